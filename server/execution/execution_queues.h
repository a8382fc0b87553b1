// The executions that have not been given to the device yet, and the choice of the next one.
#ifndef OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_
#define OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/time/time.h"

namespace opmill {

class Execution;

// The position of an execution in its queue. Used only by ExecutionQueues.
struct QueuePlace {
  std::list<std::shared_ptr<Execution>>* queue = nullptr;  // null if it is in no queue
  std::list<std::shared_ptr<Execution>>::iterator position;
  absl::Time since;
  uint64_t work_bytes = 0;
};

// Not thread-safe. An execution that was removed or given to the device is in no queue and does not
// return to one.
class ExecutionQueues {
 public:
  // Adds an execution, which waits for its first input.
  void Enter(const std::shared_ptr<Execution>& execution, absl::Time now);
  // It waits for more input.
  void AwaitInput(Execution& execution, absl::Time now);
  // It waits for its operator to be compiled.
  void AwaitOperator(Execution& execution, absl::Time now);
  // It waits for the device. `work_bytes` is its memory on the device: inputs, outputs and scratch.
  void AwaitDevice(Execution& execution, uint64_t work_bytes, absl::Time now);
  void Remove(Execution& execution);

  // Executions that have waited too long for input and should give up their memory.
  std::vector<std::shared_ptr<Execution>> Stalled(absl::Time now) const;

  // Returns the next execution for the device, removes it from its queue, and counts it as running.
  // Null if the device has enough work.
  std::shared_ptr<Execution> NextForDevice();
  // The device has finished an execution that NextForDevice returned.
  void RunEnded(const Execution& execution);

 private:
  using Queue = std::list<std::shared_ptr<Execution>>;

  static QueuePlace& PlaceOf(Execution& execution);
  static const QueuePlace& PlaceOf(const Execution& execution);
  void MoveTo(Queue& queue, Execution& execution, absl::Time now);

  Queue silent_;     // no input yet; oldest first
  Queue uploading_;  // partial input; the longest wait for more first
  Queue preparing_;  // complete input; the operator is being compiled
  Queue small_;      // ready for the device, in order
  Queue large_;
  uint32_t running_small_ = 0;
  uint64_t running_large_bytes_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_
