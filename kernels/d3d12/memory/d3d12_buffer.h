#ifndef OPMILL_KERNELS_D3D12_MEMORY_D3D12_BUFFER_H_
#define OPMILL_KERNELS_D3D12_MEMORY_D3D12_BUFFER_H_

#include <cstdint>
#include <utility>

#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/engine/buffers.h"

namespace opmill {

// What the host can access stays readable after a device loss: the slice keeps the resource and its
// mapping.
class D3D12Buffer : public Buffer {
 public:
  D3D12Buffer(BufferSlice slice, uint64_t size_bytes, Residency residency, uint64_t generation)
      : Buffer(size_bytes, residency), slice_(std::move(slice)), generation_(generation) {}

  absl::Span<std::byte> bytes() override {
    if (slice_.data() == nullptr) return {};
    return absl::MakeSpan(slice_.data(), static_cast<size_t>(size_bytes()));
  }
  const BufferSlice& slice() const { return slice_; }
  uint64_t generation() const { return generation_; }

 private:
  const BufferSlice slice_;
  const uint64_t generation_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_D3D12_BUFFER_H_
