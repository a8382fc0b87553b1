// The memory of buffers: aligned, in large pages if it is large, kept for reuse.
#ifndef OPMILL_KERNELS_CPU_DEVICE_HOST_BUFFERS_H_
#define OPMILL_KERNELS_CPU_DEVICE_HOST_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/engine/buffers.h"

namespace opmill {

// Thread-safe. Its buffers share ownership of it, and may outlive the device.
class HostBuffers : public std::enable_shared_from_this<HostBuffers> {
 public:
  HostBuffers(uint64_t max_bytes, uint64_t max_idle_bytes)
      : max_bytes_(max_bytes), max_idle_bytes_(max_idle_bytes) {}
  ~HostBuffers();

  // Returns ResourceExhausted beyond max_bytes, or if the system has no memory.
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes, Residency residency)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t idle_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Memory;

  std::byte* Take(uint64_t size_bytes, uint64_t& block_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(std::byte* block, uint64_t block_bytes, uint64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const uint64_t max_bytes_;
  const uint64_t max_idle_bytes_;
  mutable absl::Mutex mutex_;
  std::multimap<uint64_t, std::byte*> idle_ ABSL_GUARDED_BY(mutex_);  // pages, by size
  uint64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_DEVICE_HOST_BUFFERS_H_
