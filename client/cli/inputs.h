// The input arrays of `opmill run`: .npy files, arrays in .npz archives, standard input.
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
  std::string name;     // for messages: "x.npy", "x.npz:weights", "standard input"
  std::string stem;     // base name for its result: "x", "weights", "stdin"
  absl::Status status;  // the error; then only the names are set
  v1::TensorDesc desc;  // of the loaded elements
  // Returns the elements: mapped, or in memory if they were inflated, cast or piped. Called once.
  std::function<absl::StatusOr<InputBytes>()> load;
};
// The inputs of one execution, in the operator's order. Its result is named after the first one.
using Operands = std::vector<InputArray>;

// Opens the inputs that a word of the command line names: "x.npy", "x.npz" (all of its arrays),
// "x.npz:weights", "-" (a .npy file from standard input). Reads only the headers, but all of
// standard input. Converts the elements to `cast` unless it is unspecified.
std::vector<InputArray> OpenInputs(const std::string& word, v1::DataType cast);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INPUTS_H_
