// Memory of tensors that stay on the server, and its limits.
#ifndef OPMILL_SERVER_TENSORS_RESIDENT_MEMORY_H_
#define OPMILL_SERVER_TENSORS_RESIDENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "kernels/engine/device.h"

namespace opmill {

struct ResidentTensorLimits {
  uint64_t bytes = 0;            // of all tensors
  uint64_t bytes_per_owner = 0;  // 0: all
};

// Fills `to` with the bytes of a tensor from `offset` on.
using TensorContents = std::function<absl::Status(uint64_t offset, absl::Span<std::byte> to)>;

// The bytes in use. Thread-safe.
class ResidentBytes : public std::enable_shared_from_this<ResidentBytes> {
 public:
  // Until its last reference is released.
  using Share = std::shared_ptr<void>;

  explicit ResidentBytes(ResidentTensorLimits limits) : limits_(limits) {}

  // `owner` is null for the server's own tensors. The error is a sentence about `subject`: "the
  // tensor "x"".
  absl::StatusOr<Share> Take(const std::string* owner, absl::string_view subject, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same without limits, for what replaces memory that is about to be released.
  Share TakeAnyway(const std::string* owner, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  const ResidentTensorLimits& limits() const { return limits_; }
  uint64_t all() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Share Added(const std::string* owner, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(const std::string& owner, bool is_owned, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const ResidentTensorLimits limits_;
  mutable absl::Mutex mutex_;
  uint64_t all_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, uint64_t> of_owner_ ABSL_GUARDED_BY(mutex_);
};

// Memory of the host that does not depend on the device.
class HostCopy {
 public:
  static absl::StatusOr<std::shared_ptr<HostCopy>> Create(uint64_t bytes,
                                                          ResidentBytes::Share share);
  absl::Span<std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  HostCopy(std::unique_ptr<std::byte[]> bytes, size_t size, ResidentBytes::Share share)
      : share_(std::move(share)), bytes_(std::move(bytes)), size_(size) {}

  const ResidentBytes::Share share_;
  const std::unique_ptr<std::byte[]> bytes_;
  const size_t size_;
};

// Of all states of a tensor. Appended rows are written where no state has rows yet, and other bytes
// only while there is one state, which no run reads.
struct ResidentMemory {
  // `rows` from `offset` on, in buffer and copy. In an adapter's own memory, blocks at both ends
  // are written again with the bytes that they have; runs may read them meanwhile.
  absl::Status Write(Device& device, size_t offset, absl::Span<const std::byte> rows) const;
  // The first bytes of `from`, which has a copy if this has one.
  absl::Status CopyFrom(Device& device, const ResidentMemory& from, uint64_t bytes) const;

  ResidentBytes::Share share;      // of the buffer
  std::shared_ptr<Buffer> buffer;  // null: lost with the device
  std::shared_ptr<HostCopy> copy;  // with the same bytes; null: none is kept
};

// Copies between the host and a device buffer, also one in the adapter's own memory. WriteBuffer
// begins with the first byte, ReadBuffer at a multiple of kPlacementAlignment. Block until the copy
// is there.
absl::Status WriteBuffer(Device& device, const std::shared_ptr<Buffer>& buffer, uint64_t bytes,
                         const TensorContents& contents);
absl::Status ReadBuffer(Device& device, const std::shared_ptr<Buffer>& buffer, uint64_t offset,
                        absl::Span<std::byte> to);

}  // namespace opmill

#endif  // OPMILL_SERVER_TENSORS_RESIDENT_MEMORY_H_
