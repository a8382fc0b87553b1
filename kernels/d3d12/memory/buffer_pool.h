// Suballocates buffers from pooled resources. New memory is expensive (a resource is a separate
// allocation in the driver, and touching it first takes a second per gigabyte in software), so
// resources are kept.
#ifndef OPMILL_KERNELS_D3D12_MEMORY_BUFFER_POOL_H_
#define OPMILL_KERNELS_D3D12_MEMORY_BUFFER_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

// Each resource belongs to one placement, so that all its slices can share one resource state.
// Except for scratch and device buffers, memory that a command list reads is separate from memory
// that it writes.
enum class Placement : uint32_t {
  kHostInput,        // mapped; read by kernels in place (unified) or copied (else)
  kHostOutput,       // mapped; written by kernels in place (unified) or copied to (else)
  kDeviceInput,      // copies of inputs and of programs' constants
  kDeviceOutput,     // written, then copied from
  kDeviceConstants,  // written once by a copy
  kScratch,          // written, then read; in one pass too
  kDevice,           // the same for device buffers; mapped (unified) or not (else)
};
inline constexpr size_t kPlacements = 7;

inline constexpr uint64_t kMaxSharedSliceBytes = uint64_t{4} << 20;

class BufferPool;

// A part of a slice, which the pool may give to others once the slice is returned.
struct SlicePart {
  ID3D12Resource* resource = nullptr;
  uint64_t offset = 0;     // in the resource; a multiple of 256
  bool is_shared = false;  // as BufferSlice::is_shared
};

// A part of a resource, returned to its pool by the destructor. Empty if default-constructed or
// moved from.
class BufferSlice {
 public:
  BufferSlice() = default;
  ~BufferSlice() { Release(); }
  BufferSlice(BufferSlice&& other) noexcept { *this = std::move(other); }
  BufferSlice& operator=(BufferSlice&& other) noexcept;

  explicit operator bool() const { return pool_ != nullptr; }
  ID3D12Resource* resource() const { return resource_; }
  uint64_t offset() const { return offset_; }          // in the resource; a multiple of 256
  uint64_t size_bytes() const { return size_bytes_; }  // the requested size, rounded up to 256
  std::byte* data() const { return data_; }            // null if the host cannot access it
  // True if its resource is shared with other slices. Such a resource has at most 32 MiB.
  bool is_shared() const { return size_bytes_ <= kMaxSharedSliceBytes; }
  SlicePart From(uint64_t offset) const { return {resource_, offset_ + offset, is_shared()}; }
  uint64_t gpu_address() const { return resource_->GetGPUVirtualAddress() + offset_; }

 private:
  friend class BufferPool;
  void Release();

  std::shared_ptr<BufferPool> pool_;
  ID3D12Resource* resource_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t size_bytes_ = 0;
  std::byte* data_ = nullptr;
};

struct BufferPoolOptions {
  bool unified_memory = true;
  uint64_t max_host_bytes = UINT64_MAX;  // of all resources in host memory
  uint64_t max_idle_bytes = UINT64_MAX;  // of resources without allocated slices
};

// Thread-safe. Slices keep their pool alive.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  struct Usage {
    uint64_t in_use_bytes = 0;  // allocated slices
    uint64_t pooled_bytes = 0;  // the rest of the resources
  };

  static std::shared_ptr<BufferPool> Create(ComPtr<ID3D12Device> device,
                                            std::shared_ptr<Health> health,
                                            BufferPoolOptions options);

  // Returns ResourceExhausted beyond the limit, or if the driver is out of memory.
  absl::StatusOr<BufferSlice> Allocate(Placement placement, uint64_t size_bytes);

  // Destroys resources without allocated slices.
  void ReleaseIdle();

  bool unified_memory() const { return options_.unified_memory; }

  Usage usage() const;

 private:
  friend class BufferSlice;

  struct Block {
    Placement placement = Placement::kHostInput;
    ComPtr<ID3D12Resource> resource;
    std::byte* data = nullptr;
    uint64_t size_bytes = 0;
    bool shared = false;  // among many slices; otherwise one slice at a time
    uint64_t in_use_bytes = 0;
    std::map<uint64_t, uint64_t> holes;  // offset -> size; shared blocks only
    std::list<Block*>::iterator idle;    // valid while in_use_bytes is 0
  };
  using Hole = std::tuple<uint64_t, Block*, uint64_t>;  // size, block, offset
  using Blocks = std::vector<std::unique_ptr<Block>>;

  struct Arena {
    std::set<Hole> holes;                   // in shared blocks, by size
    std::multimap<uint64_t, Block*> spare;  // unused unshared blocks, by size
  };

  BufferPool(ComPtr<ID3D12Device> device, std::shared_ptr<Health> health, BufferPoolOptions options)
      : device_(std::move(device)), health_(std::move(health)), options_(options) {}

  bool IsOnHost(Placement placement) const;
  // Update the totals when a resource is created or destroyed, or turns out smaller.
  void Count(Placement placement, uint64_t size_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Discount(Placement placement, uint64_t size_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::unique_ptr<Block>> CreateBlock(Placement placement, uint64_t size_bytes,
                                                     bool shared);
  BufferSlice TryReuse(Placement placement, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BufferSlice Adopt(std::unique_ptr<Block> block, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BufferSlice Cut(Block& block, uint64_t offset, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddHole(Block& block, uint64_t offset, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Equivalent to RemoveHole and AddHole, but reuses the nodes of the containers.
  void ChangeHole(Block& block, uint64_t offset, uint64_t new_offset, uint64_t new_size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a hole, merged with adjacent holes.
  void AddRoom(Block& block, uint64_t offset, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveHole(Block& block, uint64_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkIdle(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkBusy(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the blocks that have been idle longest until at most `max_idle_bytes` are idle. The
  // caller destroys them without the lock, because unmapping gigabytes takes long.
  Blocks Trim(uint64_t max_idle_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(const BufferSlice& slice);

  const ComPtr<ID3D12Device> device_;
  const std::shared_ptr<Health> health_;
  const BufferPoolOptions options_;
  mutable absl::Mutex mutex_;
  std::array<Arena, kPlacements> arenas_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<ID3D12Resource*, std::unique_ptr<Block>> blocks_ ABSL_GUARDED_BY(mutex_);
  std::list<Block*> idle_ ABSL_GUARDED_BY(mutex_);  // longest idle first
  uint64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // including those being created
  uint64_t host_bytes_ ABSL_GUARDED_BY(mutex_) = 0;   // the part of total_bytes_ in host memory
  uint64_t in_use_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_BUFFER_POOL_H_
