// Buffers cut out of pooled resources. Fresh memory is dear (a resource is an allocation of its own
// in the driver, and its first touch costs a second a gigabyte in software), so it is kept.
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

// Resources of different placements are never the same, so that one state fits all of a resource's
// slices: what a command list reads lies apart from what it writes.
enum class Placement : uint32_t {
  kHostInput,     // mapped; read by kernels in place (unified) or copied (else)
  kHostOutput,    // mapped; written by kernels in place (unified) or copied to (else)
  kDeviceInput,   // copies of inputs
  kDeviceOutput,  // written, then copied from; scratch
};
inline constexpr size_t kPlacements = 4;

inline constexpr uint64_t kMaxSharedSliceBytes = uint64_t{4} << 20;

class BufferPool;

// A part of a resource, given back to its pool in the end. Empty when default-made or moved from.
class BufferSlice {
 public:
  BufferSlice() = default;
  ~BufferSlice() { Release(); }
  BufferSlice(BufferSlice&& other) noexcept { *this = std::move(other); }
  BufferSlice& operator=(BufferSlice&& other) noexcept;

  explicit operator bool() const { return pool_ != nullptr; }
  ID3D12Resource* resource() const { return resource_; }
  uint64_t offset() const { return offset_; }          // in the resource; a multiple of 256
  uint64_t size_bytes() const { return size_bytes_; }  // asked for, rounded up to 256
  std::byte* data() const { return data_; }            // null where the host cannot reach
  // Its resource has no more than 32 MiB, and other slices.
  bool is_shared() const { return size_bytes_ <= kMaxSharedSliceBytes; }
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
  uint64_t max_host_bytes = UINT64_MAX;  // of all resources in the host's memory together
  uint64_t max_idle_bytes = UINT64_MAX;  // of resources with no slice handed out
};

// Safe to use from many threads. Slices keep their pool alive.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  struct Usage {
    uint64_t in_use_bytes = 0;  // slices handed out
    uint64_t pooled_bytes = 0;  // the rest of the resources
  };

  static std::shared_ptr<BufferPool> Create(ComPtr<ID3D12Device> device,
                                            std::shared_ptr<Health> health,
                                            BufferPoolOptions options);

  // ResourceExhausted past the limit, or when the driver has no more.
  absl::StatusOr<BufferSlice> Allocate(Placement placement, uint64_t size_bytes);

  // Destroys what is kept for slices to come.
  void ReleaseIdle();

  Usage usage() const;

 private:
  friend class BufferSlice;

  struct Block {
    Placement placement = Placement::kHostInput;
    ComPtr<ID3D12Resource> resource;
    std::byte* data = nullptr;
    uint64_t size_bytes = 0;
    bool shared = false;  // by many slices; else by one at a time
    uint64_t in_use_bytes = 0;
    std::map<uint64_t, uint64_t> holes;  // offset -> size; shared blocks only
    std::list<Block*>::iterator idle;    // valid while in_use_bytes is 0
  };
  using Hole = std::tuple<uint64_t, Block*, uint64_t>;  // size, block, offset
  using Blocks = std::vector<std::unique_ptr<Block>>;

  struct Arena {
    std::set<Hole> holes;                   // of shared blocks: the best fit is the first
    std::multimap<uint64_t, Block*> spare;  // whole blocks that no one uses, by size
  };

  BufferPool(ComPtr<ID3D12Device> device, std::shared_ptr<Health> health, BufferPoolOptions options)
      : device_(std::move(device)), health_(std::move(health)), options_(options) {}

  bool IsOnHost(Placement placement) const;
  // A resource comes, goes, or turns out smaller.
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
  // As RemoveHole and AddHole, without memory of their own for both.
  void ChangeHole(Block& block, uint64_t offset, uint64_t new_offset, uint64_t new_size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A hole, one with those that it touches.
  void AddRoom(Block& block, uint64_t offset, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveHole(Block& block, uint64_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkIdle(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkBusy(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The longest idle blocks, until no more than `max_idle_bytes` are. The caller destroys them
  // without the lock: unmapping gigabytes takes its time.
  Blocks Trim(uint64_t max_idle_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(const BufferSlice& slice);

  const ComPtr<ID3D12Device> device_;
  const std::shared_ptr<Health> health_;
  const BufferPoolOptions options_;
  mutable absl::Mutex mutex_;
  std::array<Arena, kPlacements> arenas_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<ID3D12Resource*, std::unique_ptr<Block>> blocks_ ABSL_GUARDED_BY(mutex_);
  std::list<Block*> idle_ ABSL_GUARDED_BY(mutex_);  // the longest idle first
  uint64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // those being created among them
  uint64_t host_bytes_ ABSL_GUARDED_BY(mutex_) = 0;   // of the total, in the host's memory
  uint64_t in_use_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_BUFFER_POOL_H_
