// Temporary memory of a task. Each thread keeps a block of it, so that tasks find it in the cache.
#ifndef OPMILL_KERNELS_CPU_TASK_MEMORY_H_
#define OPMILL_KERNELS_CPU_TASK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/per_thread.h"

namespace opmill {

class TaskMemory {
 private:
  static constexpr uint64_t kAlignment = 64;
  struct Block {
    alignas(kAlignment) std::byte bytes[size_t{2} << 20];
  };
  static PerThread<Block> blocks_;

 public:
  // All memory taken from the scope is released when the scope ends.
  class Scope {
   public:
    Scope();

    std::byte* Take(uint64_t size_bytes);  // aligned to 64 bytes; uninitialized

   private:
    PerThread<Block>::Use kept_;
    uint64_t used_bytes_ = 0;
    std::vector<std::unique_ptr<std::byte[]>> large_;
  };
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_TASK_MEMORY_H_
