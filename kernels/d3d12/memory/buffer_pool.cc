#include "kernels/d3d12/memory/buffer_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"

namespace opmill {
namespace {

constexpr uint64_t kAlignment = 256;  // for constant buffers; a multiple of every view's alignment
constexpr uint64_t kSharedBlockBytes = uint64_t{32} << 20;

// Eight sizes per power of two, so that blocks can be reused for tensors of similar sizes.
uint64_t DedicatedBlockBytes(uint64_t size_bytes) {
  uint64_t octave = kMaxSharedSliceBytes;
  while (octave <= size_bytes / 2) octave *= 2;
  return RoundUp(size_bytes, octave / 8);
}

bool IsMapped(Placement placement, bool unified_memory) {
  return placement == Placement::kHostInput || placement == Placement::kHostOutput ||
         (unified_memory && placement == Placement::kDevice);
}

bool IsWritten(Placement placement, bool unified_memory) {
  return placement == Placement::kDeviceOutput || placement == Placement::kScratch ||
         placement == Placement::kDevice || (unified_memory && placement == Placement::kHostOutput);
}

D3D12_HEAP_PROPERTIES HeapOf(Placement placement, bool unified_memory) {
  D3D12_HEAP_PROPERTIES heap = {};
  if (!IsMapped(placement, unified_memory)) {
    heap.Type = D3D12_HEAP_TYPE_DEFAULT;
  } else if (unified_memory) {
    heap.Type = D3D12_HEAP_TYPE_CUSTOM;
    heap.CPUPageProperty = D3D12_CPU_PAGE_PROPERTY_WRITE_BACK;
    heap.MemoryPoolPreference = D3D12_MEMORY_POOL_L0;
  } else {
    heap.Type =
        placement == Placement::kHostInput ? D3D12_HEAP_TYPE_UPLOAD : D3D12_HEAP_TYPE_READBACK;
  }
  return heap;
}

D3D12_RESOURCE_STATES InitialState(const D3D12_HEAP_PROPERTIES& heap) {
  switch (heap.Type) {
    case D3D12_HEAP_TYPE_UPLOAD:
      return D3D12_RESOURCE_STATE_GENERIC_READ;
    case D3D12_HEAP_TYPE_READBACK:
      return D3D12_RESOURCE_STATE_COPY_DEST;
    default:
      return D3D12_RESOURCE_STATE_COMMON;
  }
}

}  // namespace

BufferSlice& BufferSlice::operator=(BufferSlice&& other) noexcept {
  if (this == &other) return *this;
  Release();
  pool_ = std::move(other.pool_);
  resource_ = std::exchange(other.resource_, nullptr);
  offset_ = std::exchange(other.offset_, 0);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  data_ = std::exchange(other.data_, nullptr);
  return *this;
}

void BufferSlice::Release() {
  if (pool_ == nullptr) return;
  pool_->GiveBack(*this);
  pool_ = nullptr;
}

std::shared_ptr<BufferPool> BufferPool::Create(ComPtr<ID3D12Device> device,
                                               std::shared_ptr<Health> health,
                                               BufferPoolOptions options) {
  return std::shared_ptr<BufferPool>(new BufferPool(std::move(device), std::move(health), options));
}

bool BufferPool::IsOnHost(Placement placement) const {
  return options_.unified_memory || IsMapped(placement, false);
}

void BufferPool::Count(Placement placement, uint64_t size_bytes) {
  total_bytes_ += size_bytes;
  if (IsOnHost(placement)) host_bytes_ += size_bytes;
}

void BufferPool::Discount(Placement placement, uint64_t size_bytes) {
  total_bytes_ -= size_bytes;
  if (IsOnHost(placement)) host_bytes_ -= size_bytes;
}

absl::StatusOr<BufferSlice> BufferPool::Allocate(Placement placement, uint64_t size_bytes) {
  const uint64_t limit = IsOnHost(placement) ? options_.max_host_bytes : UINT64_MAX;
  constexpr uint64_t kMostBytes = UINT64_MAX / 4;  // so that rounding up cannot overflow
  if (size_bytes > std::min(limit, kMostBytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "A buffer of ", size_bytes, " bytes is larger than all memory that buffers may take (",
        std::min(limit, kMostBytes), " bytes)."));
  }
  size_bytes = RoundUp(std::max<uint64_t>(size_bytes, 1), kAlignment);
  const bool shared = size_bytes <= kMaxSharedSliceBytes;
  uint64_t block_bytes = shared ? kSharedBlockBytes : DedicatedBlockBytes(size_bytes);

  Blocks trimmed;
  {
    absl::MutexLock lock(&mutex_);
    if (BufferSlice slice = TryReuse(placement, size_bytes)) return slice;
    const auto fits = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return block_bytes <= limit && host_bytes_ <= limit - block_bytes;
    };
    if (!fits()) trimmed = Trim(0);
    if (!fits() && !shared) block_bytes = size_bytes;
    if (!fits()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("A buffer of ", size_bytes, " bytes does not fit: buffers use ", host_bytes_,
                       " of the ", limit, " bytes that they may use."));
    }
    Count(placement, block_bytes);
  }
  trimmed.clear();

  absl::StatusOr<std::unique_ptr<Block>> block = CreateBlock(placement, block_bytes, shared);
  if (absl::IsResourceExhausted(block.status())) {
    {
      absl::MutexLock lock(&mutex_);
      trimmed = Trim(0);
      if (!shared) {  // the driver's limit may be between the two sizes
        Discount(placement, block_bytes - size_bytes);
        block_bytes = size_bytes;
      }
    }
    trimmed.clear();
    block = CreateBlock(placement, block_bytes, shared);
  }
  absl::MutexLock lock(&mutex_);
  if (!block.ok()) {
    Discount(placement, block_bytes);
    return block.status();
  }
  return Adopt(*std::move(block), size_bytes);
}

void BufferPool::ReleaseIdle() {
  Blocks trimmed;
  absl::MutexLock lock(&mutex_);
  trimmed = Trim(0);
}

BufferPool::Usage BufferPool::usage() const {
  absl::MutexLock lock(&mutex_);
  return {.in_use_bytes = in_use_bytes_, .pooled_bytes = total_bytes_ - in_use_bytes_};
}

absl::StatusOr<std::unique_ptr<BufferPool::Block>> BufferPool::CreateBlock(Placement placement,
                                                                           uint64_t size_bytes,
                                                                           bool shared) {
  auto block = std::make_unique<Block>();
  block->placement = placement;
  block->size_bytes = size_bytes;
  block->shared = shared;

  const D3D12_HEAP_PROPERTIES heap = HeapOf(placement, options_.unified_memory);
  D3D12_RESOURCE_DESC desc = {};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = size_bytes;
  desc.Height = 1;
  desc.DepthOrArraySize = 1;
  desc.MipLevels = 1;
  desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  desc.Flags = IsWritten(placement, options_.unified_memory)
                   ? D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
                   : D3D12_RESOURCE_FLAG_NONE;
  RETURN_IF_ERROR(health_->Check(
      device_->CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &desc, InitialState(heap),
                                       nullptr, __uuidof(ID3D12Resource),
                                       reinterpret_cast<void**>(block->resource.GetAddressOf())),
      absl::StrCat("CreateCommittedResource(", size_bytes, " bytes)")));
  if (IsMapped(placement, options_.unified_memory)) {
    void* data = nullptr;
    RETURN_IF_ERROR(health_->Check(block->resource->Map(0, nullptr, &data), "Map"));
    block->data = static_cast<std::byte*>(data);
  }
  return block;
}

BufferSlice BufferPool::TryReuse(Placement placement, uint64_t size_bytes) {
  Arena& arena = arenas_[static_cast<size_t>(placement)];
  if (size_bytes <= kMaxSharedSliceBytes) {
    const auto hole = arena.holes.lower_bound({size_bytes, nullptr, 0});
    if (hole == arena.holes.end()) return {};
    const auto [hole_bytes, block, offset] = *hole;
    if (hole_bytes > size_bytes) {
      ChangeHole(*block, offset, offset + size_bytes, hole_bytes - size_bytes);
    } else {
      RemoveHole(*block, offset);
    }
    return Cut(*block, offset, size_bytes);
  }
  const auto spare = arena.spare.lower_bound(size_bytes);
  if (spare == arena.spare.end() || spare->first > size_bytes + size_bytes / 2) return {};
  Block& block = *spare->second;
  arena.spare.erase(spare);
  return Cut(block, 0, size_bytes);
}

BufferSlice BufferPool::Adopt(std::unique_ptr<Block> owned, uint64_t size_bytes) {
  Block& block = *owned;
  blocks_[block.resource.Get()] = std::move(owned);
  MarkIdle(block);
  if (block.shared) AddHole(block, size_bytes, block.size_bytes - size_bytes);
  return Cut(block, 0, size_bytes);
}

BufferSlice BufferPool::Cut(Block& block, uint64_t offset, uint64_t size_bytes) {
  if (block.in_use_bytes == 0) MarkBusy(block);
  block.in_use_bytes += size_bytes;
  in_use_bytes_ += size_bytes;
  BufferSlice slice;
  slice.pool_ = shared_from_this();
  slice.resource_ = block.resource.Get();
  slice.offset_ = offset;
  slice.size_bytes_ = size_bytes;
  slice.data_ = block.data == nullptr ? nullptr : block.data + offset;
  return slice;
}

void BufferPool::AddHole(Block& block, uint64_t offset, uint64_t size_bytes) {
  block.holes[offset] = size_bytes;
  arenas_[static_cast<size_t>(block.placement)].holes.insert({size_bytes, &block, offset});
}

void BufferPool::ChangeHole(Block& block, uint64_t offset, uint64_t new_offset,
                            uint64_t new_size_bytes) {
  std::set<Hole>& holes = arenas_[static_cast<size_t>(block.placement)].holes;
  auto by_offset = block.holes.extract(offset);
  auto by_size = holes.extract({by_offset.mapped(), &block, offset});
  by_offset.key() = new_offset;
  by_offset.mapped() = new_size_bytes;
  by_size.value() = {new_size_bytes, &block, new_offset};
  block.holes.insert(std::move(by_offset));
  holes.insert(std::move(by_size));
}

void BufferPool::RemoveHole(Block& block, uint64_t offset) {
  const auto hole = block.holes.find(offset);
  arenas_[static_cast<size_t>(block.placement)].holes.erase({hole->second, &block, offset});
  block.holes.erase(hole);
}

void BufferPool::AddRoom(Block& block, uint64_t offset, uint64_t size_bytes) {
  uint64_t end = offset + size_bytes;
  const auto after = block.holes.lower_bound(offset);
  const bool joins_after = after != block.holes.end() && after->first == end;
  if (joins_after) end += after->second;
  if (after != block.holes.begin()) {
    const auto [before_offset, before_bytes] = *std::prev(after);
    if (before_offset + before_bytes == offset) {
      if (joins_after) RemoveHole(block, after->first);
      ChangeHole(block, before_offset, before_offset, end - before_offset);
      return;
    }
  }
  if (joins_after) {
    ChangeHole(block, after->first, offset, end - offset);
  } else {
    AddHole(block, offset, size_bytes);
  }
}

void BufferPool::MarkIdle(Block& block) {
  block.idle = idle_.insert(idle_.end(), &block);
  idle_bytes_ += block.size_bytes;
}

void BufferPool::MarkBusy(Block& block) {
  idle_.erase(block.idle);
  idle_bytes_ -= block.size_bytes;
}

BufferPool::Blocks BufferPool::Trim(uint64_t max_idle_bytes) {
  Blocks trimmed;
  while (idle_bytes_ > max_idle_bytes) {
    Block& block = *idle_.front();
    MarkBusy(block);
    Arena& arena = arenas_[static_cast<size_t>(block.placement)];
    if (block.shared) {
      RemoveHole(block, 0);
    } else {
      auto [spare, end] = arena.spare.equal_range(block.size_bytes);
      while (spare != end && spare->second != &block) ++spare;
      arena.spare.erase(spare);
    }
    Discount(block.placement, block.size_bytes);
    const auto owned = blocks_.find(block.resource.Get());
    trimmed.push_back(std::move(owned->second));
    blocks_.erase(owned);
  }
  return trimmed;
}

void BufferPool::GiveBack(const BufferSlice& slice) {
  Blocks trimmed;
  absl::MutexLock lock(&mutex_);
  Block& block = *blocks_.find(slice.resource_)->second;
  block.in_use_bytes -= slice.size_bytes_;
  in_use_bytes_ -= slice.size_bytes_;
  if (block.shared) {
    AddRoom(block, slice.offset_, slice.size_bytes_);
  } else {
    arenas_[static_cast<size_t>(block.placement)].spare.emplace(block.size_bytes, &block);
  }
  if (block.in_use_bytes == 0) {
    MarkIdle(block);
    trimmed = Trim(options_.max_idle_bytes);
  }
}

}  // namespace opmill
