// How the processor computes an operator.
#ifndef OPMILL_KERNELS_CPU_CPU_PROGRAM_H_
#define OPMILL_KERNELS_CPU_CPU_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

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

// How an operator is computed: consecutive phases of tasks. The tasks of a phase may run
// concurrently. The division into tasks depends only on the work, so that results do not depend on
// the number of threads. Immutable.
class CpuProgram {
 public:
  virtual ~CpuProgram() = default;
  virtual void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const = 0;
  // The same computation in steps, if step_bytes() is not 0. They use state_bytes() bytes of
  // scratch, and no input. The program must outlive them.
  virtual std::unique_ptr<CpuSteps> Steps(const RunBuffers&) const { return nullptr; }

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
  uint64_t rounding_ = 0;  // 0: however the operator is computed
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_CPU_CPU_PROGRAM_H_
