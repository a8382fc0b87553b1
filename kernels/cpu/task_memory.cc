#include "kernels/cpu/task_memory.h"

#include "kernels/base/rounding.h"

namespace opmill {

constinit PerThread<TaskMemory::Block> TaskMemory::blocks_;

TaskMemory::Scope::Scope() : kept_(blocks_) {}

std::byte* TaskMemory::Scope::Take(uint64_t size_bytes) {
  size_bytes = RoundUp(size_bytes, kAlignment);
  if (size_bytes <= sizeof(Block) - used_bytes_) {
    std::byte* taken = kept_->bytes + used_bytes_;
    used_bytes_ += size_bytes;
    return taken;
  }
  large_.emplace_back(new std::byte[static_cast<size_t>(size_bytes + kAlignment)]);
  std::byte* const large = large_.back().get();
  return large + (kAlignment - reinterpret_cast<uintptr_t>(large) % kAlignment) % kAlignment;
}

}  // namespace opmill
