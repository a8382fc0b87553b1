#include "kernels/cpu/task_memory.h"

#include <atomic>

namespace opmill {
namespace {

constexpr uint64_t kAlignment = 64;

std::byte* Align(std::byte* bytes) {
  return bytes + (kAlignment - reinterpret_cast<uintptr_t>(bytes) % kAlignment) % kAlignment;
}

// The block that each thread keeps between its scopes; more threads than slots share them. Not
// thread_local variables, because mingw-w64 frees those before it destroys them (its bug 527).
constexpr size_t kSlots = 64;
std::atomic<std::byte*> slots[kSlots];

std::atomic<std::byte*>& SlotOfThisThread() {
  static std::atomic<size_t> threads = 0;
  static thread_local const size_t number = threads++;
  return slots[number % kSlots];
}

}  // namespace

TaskMemory::Scope::Scope() : kept_(SlotOfThisThread().exchange(nullptr)) {
  if (kept_ == nullptr) kept_.reset(new std::byte[kKeptBytes + kAlignment]);
}

TaskMemory::Scope::~Scope() { delete[] SlotOfThisThread().exchange(kept_.release()); }

std::byte* TaskMemory::Scope::Take(uint64_t size_bytes) {
  size_bytes = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (size_bytes <= kKeptBytes - used_bytes_) {
    std::byte* taken = Align(kept_.get()) + used_bytes_;
    used_bytes_ += size_bytes;
    return taken;
  }
  large_.emplace_back(new std::byte[static_cast<size_t>(size_bytes + kAlignment)]);
  return Align(large_.back().get());
}

}  // namespace opmill
