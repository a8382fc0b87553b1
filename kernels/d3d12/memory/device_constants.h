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
// bus.
class DeviceConstants {
 public:
  DeviceConstants() = default;
  static absl::StatusOr<DeviceConstants> Create(BufferPool& pool, uint64_t size_bytes);

  std::byte* data() const { return source_.data(); }
  const BufferSlice& source() const { return source_; }
  // What commands read.
  const BufferSlice& slice() const { return copy_ ? copy_ : source_; }

  // Called by the thread that submits.
  bool needs_copy() const { return copy_ && !is_copied_; }
  void SetCopied() const { is_copied_ = true; }

 private:
  BufferSlice source_;
  BufferSlice copy_;  // empty if kernels read the host's memory in place
  mutable bool is_copied_ = false;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_DEVICE_CONSTANTS_H_
