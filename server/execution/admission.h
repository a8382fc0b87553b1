// Decides whether new work is taken: the limits against what is open, as values.
#ifndef OPMILL_SERVER_EXECUTION_ADMISSION_H_
#define OPMILL_SERVER_EXECUTION_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/descriptor/tensor.h"
#include "server/config/options.h"

namespace opmill {

// The error for new work while the server drains.
absl::Status Draining();

// Refusals are ResourceExhausted, with a retry delay where there may be room later; Unavailable
// while draining. Immutable.
class Admission {
 public:
  // What is open.
  struct Load {
    bool draining = false;
    bool short_of_memory = false;
    uint64_t queued = 0;        // executions that wait for the device
    uint64_t compilations = 0;  // that CompileOperator calls wait for
  };

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // May an execution with these tensors begin, which has so much time left? Its memory and its
  // place among the executions are not taken yet: MemoryBudget and CheckPlace say whether it gets
  // them.
  absl::Status CheckExecution(const std::vector<TensorDesc>& inputs,
                              const std::vector<TensorDesc>& outputs, absl::Duration time_left,
                              const Load& load) const;
  absl::Status CheckPlace(uint64_t other_executions) const;

  // May one more operator with these tensors be compiled for a CompileOperator call?
  absl::Status CheckCompilation(const std::vector<TensorDesc>& inputs,
                                const std::vector<TensorDesc>& outputs, const Load& load) const;

  // The error of an execution for which the device has no memory. If no other execution uses any,
  // there will not be more of it later.
  static absl::Status OutOfMemory(absl::Status status, uint64_t other_executions);
  // The error of an execution whose room went to another one because it got no input.
  static absl::Status Displaced();

 private:
  absl::Status CheckSizes(const std::vector<TensorDesc>& inputs,
                          const std::vector<TensorDesc>& outputs) const;
  absl::Status CheckMemory(const Load& load) const;

  const Limits limits_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_ADMISSION_H_
