// Memory-mapped files.
#ifndef OPMILL_CLIENT_MAPPED_FILE_H_
#define OPMILL_CLIENT_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace opmill {

// Mapped read-only until the last reference is released. `path` is UTF-8.
class MappedFile {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_;  // null for an empty file
  size_t size_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_MAPPED_FILE_H_
