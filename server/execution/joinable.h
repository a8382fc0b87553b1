// Which requests one run may compute together, and the programs of such runs.
#ifndef OPMILL_SERVER_EXECUTION_JOINABLE_H_
#define OPMILL_SERVER_EXECUTION_JOINABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/program/program.h"
#include "server/execution/execution.h"
#include "server/models/batch_options.h"
#include "server/models/compile_limit.h"

namespace opmill {

// The most bytes of inputs and outputs of a joined run: not more than what the device gets at once.
inline constexpr uint64_t kMostJoinedBytes = uint64_t{32} << 20;

// What the programs of joined runs of the same requests differ in.
struct JoinedShape {
  uint32_t rows = 0;
  uint32_t row_length = 0;    // of the outputs, if the operator has such an attribute
  bool has_optional = false;  // an input that only some of the requests may have
  uint32_t shared_rows = 0;   // of a resident input of which the requests may read more or fewer

  friend bool operator==(const JoinedShape&, const JoinedShape&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const JoinedShape& shape) {
    return H::combine(std::move(h), shape.rows, shape.row_length, shape.has_optional,
                      shape.shared_rows);
  }
};

struct JoinedProgram {
  std::shared_ptr<const Program> program;
  LimitedProgram limited;  // when it is compiled
};

// Requests that differ only in their rows: for the same model, which joins requests; or for the
// same operator and the same resident tensors, if its schema has rows. Requests for an operator may
// also differ in the length of the rows of their outputs, in whether they have the schema's
// optional input, and in the rows that they read of a tensor to which rows are appended. Immutable.
class Joinable {
 public:
  // Null if the request is computed alone.
  static std::unique_ptr<const Joinable> Of(const ExecutionRequest& request);
  virtual ~Joinable() = default;

  // Equal keys are necessary; objects in them may be gone, and others have their addresses.
  virtual std::string Key() const = 0;
  virtual bool IsSameAs(const Joinable& other) const = 0;
  virtual const BatchOptions& options() const = 0;
  // Whether its programs are single operators.
  virtual bool is_operator() const = 0;

  // Of a run of these requests with so many rows: as long as the longest, or longer, so that few
  // programs serve all of them.
  virtual JoinedShape ShapeOf(absl::Span<const std::shared_ptr<Execution>> members,
                              uint32_t rows) const = 0;
  // The program of a run: null if it has not been made yet.
  virtual std::shared_ptr<const Program> Find(const JoinedShape& shape) const = 0;
  // Without a program if none is needed any more.
  virtual absl::StatusOr<JoinedProgram> Make(const JoinedShape& shape,
                                             const CompileLimit& limit) const = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_JOINABLE_H_
