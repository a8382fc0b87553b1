// A segment of the operating system's shared memory: shm_open on Linux, a named file mapping on
// Windows.
#ifndef OPMILL_SERVER_SHARED_MEMORY_SEGMENT_H_
#define OPMILL_SERVER_SHARED_MEMORY_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace opmill {

// The users whose segments may be opened. On Windows the access rights of a segment decide alone.
struct SegmentOwners {
  bool any = false;
  std::optional<uint32_t> caller;  // beside the user of this process
};

// Thread-safe. Other processes may write the segment, shrink it and remove its name at any time.
// The bytes are therefore copied by the system (pread, pwrite, ReadProcessMemory), which reports
// missing bytes as an error. Direct access through a mapping would be a fatal signal.
class Segment {
 public:
  // `name` must be a valid name of a segment, without a slash. Errors contain the system's reason.
  static absl::StatusOr<std::shared_ptr<const Segment>> Open(const std::string& name,
                                                             const SegmentOwners& owners);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  absl::StatusOr<uint64_t> SizeBytes() const;
  // OutOfRange if the segment ends before the last byte; some bytes may have been copied then.
  absl::Status Read(uint64_t offset, absl::Span<std::byte> to) const;
  absl::Status Write(uint64_t offset, absl::Span<const std::byte> from) const;

 private:
#ifdef _WIN32
  Segment(std::byte* view, uint64_t bytes) : view_(view), bytes_(bytes) {}
  std::byte* const view_;
  const uint64_t bytes_;
#else
  explicit Segment(int file) : file_(file) {}
  const int file_;
#endif
};

}  // namespace opmill

#endif  // OPMILL_SERVER_SHARED_MEMORY_SEGMENT_H_
