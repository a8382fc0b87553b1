// The arrays that `opmill run` computes of: .npy files, the arrays of .npz archives, standard
// input.
#ifndef OPMILL_CLIENT_CLI_INPUTS_H_
#define OPMILL_CLIENT_CLI_INPUTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/execution.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

inline constexpr char kStandardStream[] = "-";
inline constexpr char kArchiveSuffix[] = ".npz";

struct InputArray {
  std::string name;     // for sentences: "x.npy", "x.npz:weights", "standard input"
  std::string stem;     // what its result may be called: "x", "weights", "stdin"
  absl::Status status;  // why there is no such array; then nothing but the names is here
  v1::TensorDesc desc;  // of what Load gives
  // The elements: mapped, or in memory where they were inflated, cast or piped. Called once.
  std::function<absl::StatusOr<InputBytes>()> load;
};
// Of one execution, in the operator's order. Its result is named for the first.
using Operands = std::vector<InputArray>;

// What a word of the command line names: "x.npy", "x.npz" (each array of it), "x.npz:weights", "-"
// (one .npy file from standard input). Reads headers alone, but all of standard input. The elements
// become `cast` where that is a type.
std::vector<InputArray> OpenInputs(const std::string& word, v1::DataType cast);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INPUTS_H_
