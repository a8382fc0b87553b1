// The destinations of the results of `opmill run`, from --output and --indices.
#ifndef OPMILL_CLIENT_CLI_OUTPUT_PLAN_H_
#define OPMILL_CLIENT_CLI_OUTPUT_PLAN_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/inputs.h"

namespace opmill {

struct OutputTarget {
  enum class Kind { kScreen, kFile, kStandardOutput, kArchive };
  Kind kind = Kind::kScreen;
  std::string path;    // path of the file or archive
  std::string member;  // the array's name in the archive

  // "y.npy", "y.npz:weights"
  std::string Name() const;
};

// Assigns a target to each execution and output flag; no two are the same. Example:
//
//   OutputPlan plan(inputs);
//   absl::StatusOr<std::vector<OutputTarget>> values = plan.Add("output", line.Get("output"));
class OutputPlan {
 public:
  explicit OutputPlan(const std::vector<Operands>& inputs) : inputs_(inputs) {}

  // `value` is a file (if there is one execution), a folder (which exists or ends with a slash), a
  // name in which {} stands for the input's stem, a .npz archive, "-", or absent for the screen.
  // InvalidArgument names the flag.
  absl::StatusOr<std::vector<OutputTarget>> Add(const std::string& flag,
                                                const std::optional<std::string>& value);

  // Creates the folders that end with a slash. Returns an error if a file obviously cannot be
  // written.
  absl::Status Prepare() const;

 private:
  struct Use {
    std::string flag;
    const InputArray* input;
    OutputTarget target;
  };
  absl::StatusOr<OutputTarget> TargetOf(const std::string& flag, const std::string& value,
                                        const InputArray& input) const;

  const std::vector<Operands>& inputs_;  // per execution
  std::map<std::string, Use> uses_;      // by OutputTarget::Name
  std::set<std::string> folders_;        // to be created
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_OUTPUT_PLAN_H_
