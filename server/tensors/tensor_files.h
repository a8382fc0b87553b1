// The .npy files of --tensors.
#ifndef OPMILL_SERVER_TENSORS_TENSOR_FILES_H_
#define OPMILL_SERVER_TENSORS_TENSOR_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/tensor.h"
#include "server/tensors/resident_memory.h"

namespace opmill {

struct TensorFile {
  std::string path;  // UTF-8
  std::string name;  // of the file, without ".npy"
  TensorDesc tensor;
  // An error if the file has changed since it was found.
  TensorContents contents;
};

// Of the folder itself, in the order of their names; hidden files and other files are passed over.
// Reads only the headers. Errors are sentences that name the file.
absl::StatusOr<std::vector<TensorFile>> FindTensorFiles(const std::string& folder);

// The sentence about a file that is one of these, or cannot be.
std::string CannotBeServed(absl::string_view path, const absl::Status& why);

}  // namespace opmill

#endif  // OPMILL_SERVER_TENSORS_TENSOR_FILES_H_
