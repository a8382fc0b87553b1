// Writes .npy files atomically.
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

// Writes to a temporary file next to `path` (or next to the target of a link), which Commit
// renames. Without Commit, nothing remains.
class NpyWriter {
 public:
  // InvalidArgument if the file cannot be written: it is a folder or a device, or its folder does
  // not exist.
  static absl::Status CheckPath(const std::string& path);

  // For a packed tensor in row-major order; Unimplemented if it has strides. `path` is UTF-8,
  // `is_bool` as in MakeNpyHeader.
  static absl::StatusOr<std::unique_ptr<NpyWriter>> Create(const std::string& path,
                                                           const v1::TensorDesc& desc,
                                                           bool is_bool = false);
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
