#ifndef OPMILL_KERNELS_D3D12_MEMORY_HOST_BUFFER_H_
#define OPMILL_KERNELS_D3D12_MEMORY_HOST_BUFFER_H_

#include <cstdint>
#include <utility>

#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/engine/device.h"

namespace opmill {

// Stays readable after a device loss: the slice keeps the resource and its mapping.
class D3D12HostBuffer : public HostBuffer {
 public:
  D3D12HostBuffer(BufferSlice slice, uint64_t size_bytes, BufferUse use, uint64_t generation)
      : slice_(std::move(slice)), size_bytes_(size_bytes), use_(use), generation_(generation) {}

  absl::Span<std::byte> bytes() override {
    return absl::MakeSpan(slice_.data(), static_cast<size_t>(size_bytes_));
  }
  const BufferSlice& slice() const { return slice_; }
  uint64_t size_bytes() const { return size_bytes_; }
  BufferUse use() const { return use_; }
  uint64_t generation() const { return generation_; }

 private:
  const BufferSlice slice_;
  const uint64_t size_bytes_;
  const BufferUse use_;
  const uint64_t generation_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_HOST_BUFFER_H_
