// Writes .npz archives as numpy.savez does: .npy files, stored.
#ifndef OPMILL_CLIENT_CLI_NPZ_WRITER_H_
#define OPMILL_CLIENT_CLI_NPZ_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/file_writer.h"

namespace opmill {

// The archive appears when Commit succeeds.
class NpzWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NpzWriter>> Create(const std::string& path);

  // Adds a .npy file. `name` is NumPy's name for it, unique in the archive and at most 64 KiB long.
  absl::Status Add(const std::string& name, absl::Span<const std::byte> npy);
  absl::Status Commit();

 private:
  explicit NpzWriter(std::unique_ptr<FileWriter> file) : file_(std::move(file)) {}
  absl::Status Append(const std::string& record);

  const std::unique_ptr<FileWriter> file_;
  uint64_t size_ = 0;  // current size of the file
  uint64_t members_ = 0;
  std::string directory_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_NPZ_WRITER_H_
