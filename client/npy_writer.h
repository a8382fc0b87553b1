// Writes a .npy file that appears completely or not at all.
#ifndef OPMILL_CLIENT_NPY_WRITER_H_
#define OPMILL_CLIENT_NPY_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "opmill/v1/tensor.pb.h"

namespace opmill {

class FileWriter;

// Writes to a temporary file next to `path` (or next to the target of a link), and renames it in
// Commit. Without Commit, nothing is left.
class NpyWriter {
 public:
  // Returns InvalidArgument if no such file can be written: it is a directory or a device, or its
  // directory does not exist.
  static absl::Status CheckPath(const std::string& path);

  // Writes a packed tensor in row-major order. Returns Unimplemented for a tensor with strides.
  // `path` is UTF-8.
  static absl::StatusOr<std::unique_ptr<NpyWriter>> Create(const std::string& path,
                                                           const v1::TensorDesc& desc);
  ~NpyWriter();
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  // Appends bytes of the elements.
  absl::Status Append(absl::Span<const std::byte> bytes);
  absl::Status Commit();

 private:
  explicit NpyWriter(std::unique_ptr<FileWriter> file);

  const std::unique_ptr<FileWriter> file_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_WRITER_H_
