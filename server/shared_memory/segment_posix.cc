#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "server/shared_memory/segment.h"

namespace opmill {
namespace {

absl::Status EndsAt(uint64_t offset) {
  return absl::OutOfRangeError(absl::StrCat("it ends at byte ", offset));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Segment>> Segment::Open(const std::string& name,
                                                             const SegmentOwners& owners) {
  const int file = shm_open(absl::StrCat("/", name).c_str(), O_RDWR, 0);
  if (file < 0) return absl::ErrnoToStatus(errno, "shm_open");
  std::shared_ptr<const Segment> segment(new Segment(file));
  struct stat status = {};
  if (fstat(file, &status) != 0) return absl::ErrnoToStatus(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError("not a segment");
  if (!owners.any && status.st_uid != geteuid() && status.st_uid != owners.caller) {
    return absl::PermissionDeniedError(absl::StrCat(
        "it belongs to user ", status.st_uid, ", the server runs as user ", geteuid(),
        owners.caller.has_value() ? absl::StrCat(" and the caller as user ", *owners.caller) : "",
        ", and only --shared_memory=on allows other users"));
  }
  return segment;
}

Segment::~Segment() { close(file_); }

absl::StatusOr<uint64_t> Segment::SizeBytes() const {
  struct stat status = {};
  if (fstat(file_, &status) != 0) return absl::ErrnoToStatus(errno, "fstat");
  return static_cast<uint64_t>(status.st_size);
}

absl::Status Segment::Read(uint64_t offset, absl::Span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t bytes = pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return absl::ErrnoToStatus(errno, "pread");
    if (bytes == 0) return EndsAt(offset);
    offset += static_cast<uint64_t>(bytes);
    to.remove_prefix(static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

absl::Status Segment::Write(uint64_t offset, absl::Span<const std::byte> from) const {
  // A write beyond its end would enlarge the segment.
  ASSIGN_OR_RETURN(const uint64_t size, SizeBytes());
  if (offset > size || from.size() > size - offset) return EndsAt(size);
  while (!from.empty()) {
    const ssize_t bytes = pwrite(file_, from.data(), from.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return absl::ErrnoToStatus(errno, "pwrite");
    offset += static_cast<uint64_t>(bytes);
    from.remove_prefix(static_cast<size_t>(bytes));
  }
  return absl::OkStatus();
}

}  // namespace opmill
