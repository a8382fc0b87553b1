// Bytes that never change, in the memory that kernels read fastest.
#ifndef OPMILL_KERNELS_D3D12_MEMORY_DEVICE_CONSTANTS_H_
#define OPMILL_KERNELS_D3D12_MEMORY_DEVICE_CONSTANTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/d3d12/memory/buffer_pool.h"

namespace opmill {

// Written by the host once, before the first list that uses them is recorded. If the device has its
// own memory, that list copies them there: from the host's, each dispatch would read them over the
// bus. Once it has ended, the host's memory is released.
class DeviceConstants {
 public:
  DeviceConstants() = default;
  // `use`: kDeviceConstants, or kDeviceInput for what kernels read through views.
  static absl::StatusOr<DeviceConstants> Create(BufferPool& pool, Placement use,
                                                uint64_t size_bytes);

  // Only until the first list that uses them is recorded.
  std::byte* data() const { return source_.data(); }
  const BufferSlice& source() const { return source_; }
  D3D12_RESOURCE_STATES state() const {
    return use_ == Placement::kDeviceInput
               ? D3D12_RESOURCE_STATE_NON_PIXEL_SHADER_RESOURCE
               : D3D12_RESOURCE_STATE_VERTEX_AND_CONSTANT_BUFFER | D3D12_RESOURCE_STATE_COPY_SOURCE;
  }
  // What commands read.
  const BufferSlice& slice() const { return copy_ ? copy_ : source_; }

  // Called by the thread that submits.
  bool needs_copy() const { return copy_ && !is_copied_; }
  void SetCopied() const { is_copied_ = true; }
  // The list that copies them has ended.
  void ReleaseSource() const { source_ = {}; }

 private:
  Placement use_ = Placement::kDeviceConstants;
  mutable BufferSlice source_;
  BufferSlice copy_;  // empty if kernels read the host's memory in place
  mutable bool is_copied_ = false;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_DEVICE_CONSTANTS_H_
