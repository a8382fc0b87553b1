// The inputs of `opmill run`: .npy files, arrays of .npz archives, standard input.
#ifndef OPMILL_CLIENT_CLI_INPUTS_H_
#define OPMILL_CLIENT_CLI_INPUTS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/execution.h"
#include "client/npy.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

inline constexpr char kStandardStream[] = "-";
inline constexpr char kArchiveSuffix[] = ".npz";

struct InputArray {
  std::string name;               // for messages: "x.npy", "x.npz:weights", "standard input"
  std::string stem;               // for the name of the result: "x", "weights", "stdin"
  std::optional<NpyDtype> dtype;  // of the file, if it can be read
  absl::Status status;  // if not OK, the array cannot be taken, and only the above are set
  v1::TensorDesc desc;  // of the elements that `load` returns
  // The elements, mapped from the file if they need no conversion. Called at most once.
  std::function<absl::StatusOr<InputBytes>()> load;
};
// The inputs of one execution, in the operator's order. The result is named after the first.
using Operands = std::vector<InputArray>;

// Opens an argument: "x.npy", "x.npz" (every array of it), "x.npz:weights", or "-" (a .npy file
// from standard input). Reads only the headers of files, but all of standard input. The elements
// are converted to `cast` if that is specified.
std::vector<InputArray> OpenInputs(const std::string& word, v1::DataType cast);
// An error unless there is exactly one array: "x.npz holds 2 arrays; select one...".
// `argument` is the word as the user knows it, perhaps with its flag.
absl::Status CheckIsOne(absl::string_view argument, const std::vector<InputArray>& arrays);
// The only array of such an argument. An error if it holds several, or cannot be taken.
absl::StatusOr<InputArray> OpenInput(const std::string& word, v1::DataType cast);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_INPUTS_H_
