#include "kernels/cpu/task_memory.h"

namespace opmill {
namespace {

constexpr uint64_t kAlignment = 64;

std::byte* Align(std::byte* bytes) {
  return bytes + (kAlignment - reinterpret_cast<uintptr_t>(bytes) % kAlignment) % kAlignment;
}

TaskMemory& OfThisThread() {
  static thread_local TaskMemory memory;
  return memory;
}

}  // namespace

TaskMemory::Scope::Scope() : memory_(OfThisThread()) {
  if (memory_.kept_ == nullptr) memory_.kept_.reset(new std::byte[kKeptBytes + kAlignment]);
}

TaskMemory::Scope::~Scope() { memory_.used_bytes_ = 0; }

std::byte* TaskMemory::Scope::Take(uint64_t size_bytes) {
  size_bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (size_bytes <= kKeptBytes - memory_.used_bytes_) {
    std::byte* taken = Align(memory_.kept_.get()) + memory_.used_bytes_;
    memory_.used_bytes_ += size_bytes;
    return taken;
  }
  large_.emplace_back(new std::byte[static_cast<size_t>(size_bytes + kAlignment)]);
  return Align(large_.back().get());
}

}  // namespace opmill
