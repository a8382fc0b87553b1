// How the processor computes an operator.
#ifndef OPMILL_KERNELS_CPU_CPU_PROGRAM_H_
#define OPMILL_KERNELS_CPU_CPU_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/kept_constants.h"
#include "kernels/descriptor/operator_limits.h"

namespace opmill {

// The buffers of a run.
struct RunBuffers {
  std::array<const std::byte*, kMaxInputs> inputs = {};
  std::array<std::byte*, kMaxOutputs> outputs = {};
  std::byte* scratch = nullptr;
};

// A run whose input arrives from front to back, and is not kept. Not thread-safe.
class CpuSteps {
 public:
  virtual ~CpuSteps() = default;
  virtual uint64_t bytes() const = 0;  // that the next step takes; 0 after the last one
  // `input` is aligned to its elements.
  virtual void Take(const std::byte* input) = 0;
};

// Computes elements of an output in place: each from the element that is there, and from elements
// of other tensors. Immutable.
class CpuFollower {
 public:
  virtual ~CpuFollower() = default;
  // `count` elements from `first` on, in the order of memory.
  virtual void Run(uint64_t first, uint64_t count, const RunBuffers& buffers) const = 0;
  // Whether it is relu of the element that is there, which a kernel may compute itself.
  virtual bool IsRelu() const { return false; }
};

// How an operator is computed: consecutive phases of tasks. The tasks of a phase may run
// concurrently. The division into tasks depends only on the work, so that results do not depend on
// the number of threads. Immutable once it is complete.
class CpuProgram {
 public:
  virtual ~CpuProgram() = default;
  virtual void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const = 0;
  // The same computation in steps, if step_bytes() is not 0. They use state_bytes() bytes of
  // scratch, and no input. The program must outlive them.
  virtual std::unique_ptr<CpuSteps> Steps(const RunBuffers&) const { return nullptr; }

  // Lets `follower` compute all elements of the output, each after it was written for the last time
  // and while it is in the cache. False if the program cannot; then nothing changes.
  virtual bool Follow(std::unique_ptr<const CpuFollower>& /*follower*/) { return false; }

  // Whether the program can keep an input that is the same in all runs, in a form of its own.
  virtual bool CanKeep(size_t /*input*/) const { return false; }
  // Keeps it. Runs do not read the input any more.
  virtual void Keep(size_t /*input*/, const ConstantInput& /*constant*/) {}
  // What it keeps, which other programs may keep too.
  const std::vector<std::shared_ptr<const KeptFloats>>& kept() const { return kept_; }

  const std::vector<uint64_t>& phases() const { return phases_; }  // number of tasks in each phase
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t task_bytes() const { return task_bytes_; }    // TaskMemory that a task takes, if much
  uint64_t cost_bytes() const { return cost_bytes_; }    // read and written, weighed by the work
  bool fills_outputs() const { return fills_outputs_; }  // every element, not only some
  uint64_t step_bytes() const { return step_bytes_; }    // the most that a step takes
  uint64_t state_bytes() const { return state_bytes_; }
  // Programs of the same operator for other sizes round each result in the same way if they have
  // the same number here.
  uint64_t rounding() const { return rounding_; }

 protected:
  std::vector<uint64_t> phases_;
  uint64_t scratch_bytes_ = 0;
  uint64_t task_bytes_ = 0;
  uint64_t cost_bytes_ = 0;
  bool fills_outputs_ = true;
  uint64_t step_bytes_ = 0;
  uint64_t state_bytes_ = 0;
  std::vector<std::shared_ptr<const KeptFloats>> kept_;
  uint64_t rounding_ = 0;  // 0: however the operator is computed
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_CPU_PROGRAM_H_
