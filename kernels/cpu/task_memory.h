// Memory that a task needs while it runs. Each thread keeps some, so that tasks find it warm.
#ifndef OPMILL_KERNELS_CPU_TASK_MEMORY_H_
#define OPMILL_KERNELS_CPU_TASK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace opmill {

class TaskMemory {
 public:
  // Everything taken is given back when the scope ends.
  class Scope {
   public:
    Scope();
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    std::byte* Take(uint64_t size_bytes);  // aligned to 64 bytes; of any content

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
