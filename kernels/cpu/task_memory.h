// Temporary memory of a task. Each thread keeps a block of it, so that tasks find it in the cache.
#ifndef OPMILL_KERNELS_CPU_TASK_MEMORY_H_
#define OPMILL_KERNELS_CPU_TASK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace opmill {

class TaskMemory {
 public:
  // All memory taken from the scope is released when the scope ends.
  class Scope {
   public:
    Scope();
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    std::byte* Take(uint64_t size_bytes);  // aligned to 64 bytes; uninitialized

   private:
    std::unique_ptr<std::byte[]> kept_;
    uint64_t used_bytes_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> large_;
  };

 private:
  static constexpr uint64_t kKeptBytes = uint64_t{512} << 10;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_TASK_MEMORY_H_
