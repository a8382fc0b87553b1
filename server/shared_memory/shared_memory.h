// Tensors in shared memory: which segments callers may name, and the regions that they register.
#ifndef OPMILL_SERVER_SHARED_MEMORY_SHARED_MEMORY_H_
#define OPMILL_SERVER_SHARED_MEMORY_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/shared_memory/region_table.h"
#include "server/shared_memory/segment.h"

namespace opmill {

// A contiguous part of a segment. Thread-safe, copyable. Holds nothing of the system: each copy
// opens the segment and closes it again, so that executions that wait keep no files open.
class SharedRange {
 public:
  SharedRange(std::string name, const SegmentOwners& owners, uint64_t offset, uint64_t byte_size)
      : name_(std::move(name)), owners_(owners), offset_(offset), bytes_(byte_size) {}

  uint64_t size() const { return bytes_; }
  // Copies from `offset` of the range on. All of it must lie within the range. Returns
  // InvalidArgument with the field `key` if the segment has shrunk or is gone. Reads each byte
  // once.
  absl::Status Read(uint64_t offset, absl::Span<std::byte> to) const;
  absl::Status Write(uint64_t offset, absl::Span<const std::byte> from) const;

  bool Overlaps(const SharedRange& other) const;

 private:
  absl::Status Explain(const absl::Status& status, absl::string_view verb) const;

  std::string name_;  // of the segment, without a slash
  SegmentOwners owners_;
  uint64_t offset_;
  uint64_t bytes_;
};

// Thread-safe. Errors are InvalidArgument with the field `name`, `key`, `offset` or `byte_size`,
// unless stated otherwise; add the path of the message with UnderPath.
//
// A key names a segment as for shm_open: one optional slash in front, none within. Thus no other
// files can be reached.
//
// Unless all users are allowed, the segment must belong to the user of the server or of the caller.
//
// A segment belongs to the process that created it. The server has it open only while it copies; a
// region consists of its four values alone. Thus nothing has to be released when the owner of a
// segment goes away.
class SharedMemory {
 public:
  enum class Users { kNone, kServerAndCaller, kAll };

  SharedMemory(Users users, uint32_t max_regions) : users_(users), regions_(max_regions) {}

  bool is_allowed() const { return users_ != Users::kNone; }

  // The range, if the segment exists and contains it.
  absl::StatusOr<SharedRange> Open(const SharedMemoryCaller& caller, const std::string& key,
                                   uint64_t offset, uint64_t byte_size) const;

  // Callers of different names do not see each other's regions. The segment must exist and contain
  // the region. ResourceExhausted as from RegionTable::Add.
  absl::Status Register(const SharedMemoryCaller& caller, const SharedRegion& region)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False if there is no such region. Executions that use it are not affected.
  bool Unregister(absl::string_view caller, absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  void UnregisterAll(absl::string_view caller) ABSL_LOCKS_EXCLUDED(mutex_);
  // In the order of their names.
  std::vector<SharedRegion> Regions(absl::string_view caller) const ABSL_LOCKS_EXCLUDED(mutex_);
  // A range of a region, as Open.
  absl::StatusOr<SharedRange> OpenRegion(const SharedMemoryCaller& caller, absl::string_view name,
                                         uint64_t offset, uint64_t byte_size) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status CheckAllowed() const;

  const Users users_;
  mutable absl::Mutex mutex_;
  mutable RegionTable regions_ ABSL_GUARDED_BY(mutex_);  // a use of a region is recorded there
};

}  // namespace opmill

#endif  // OPMILL_SERVER_SHARED_MEMORY_SHARED_MEMORY_H_
