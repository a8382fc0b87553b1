// A .npy file that comes into being whole or not at all.
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

// Written under another name beside `path` (or beside what that links to), and renamed by Commit.
// Without that nothing is left of it.
class NpyWriter {
 public:
  // InvalidArgument where a file of that name cannot be written: a folder, a device, no such
  // folder.
  static absl::Status CheckPath(const std::string& path);

  // A packed tensor in row-major order; Unimplemented for one with strides. `path` is UTF-8.
  static absl::StatusOr<std::unique_ptr<NpyWriter>> Create(const std::string& path,
                                                           const v1::TensorDesc& desc);
  ~NpyWriter();
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  // The next bytes of the elements.
  absl::Status Append(absl::Span<const std::byte> bytes);
  absl::Status Commit();

 private:
  explicit NpyWriter(std::unique_ptr<FileWriter> file);

  const std::unique_ptr<FileWriter> file_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_NPY_WRITER_H_
