// The executions that the device does not have yet, and the choice of the next one that it gets.
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

// Where an execution waits. For ExecutionQueues alone.
struct QueuePlace {
  std::list<std::shared_ptr<Execution>>* queue = nullptr;  // null in none
  std::list<std::shared_ptr<Execution>>::iterator position;
  absl::Time since;
  uint64_t work_bytes = 0;
};

// Not thread-safe. An execution that was removed or handed to the device is in no queue and does
// not get into one again.
class ExecutionQueues {
 public:
  // It waits for its first input,
  void Enter(const std::shared_ptr<Execution>& execution, absl::Time now);
  // for more of it,
  void AwaitInput(Execution& execution, absl::Time now);
  // for its operator,
  void AwaitOperator(Execution& execution, absl::Time now);
  // for the device, on which it reads, writes and keeps so many bytes.
  void AwaitDevice(Execution& execution, uint64_t work_bytes, absl::Time now);
  void Remove(Execution& execution);

  // Some that have waited for input longer than others must do without their room.
  std::vector<std::shared_ptr<Execution>> Stalled(absl::Time now) const;

  // The next for the device: it is in no queue any more and counts as running. Null where the
  // device has enough.
  std::shared_ptr<Execution> NextForDevice();
  // The device has done with what NextForDevice gave.
  void RunEnded(const Execution& execution);

 private:
  using Queue = std::list<std::shared_ptr<Execution>>;

  static QueuePlace& PlaceOf(Execution& execution);
  static const QueuePlace& PlaceOf(const Execution& execution);
  void MoveTo(Queue& queue, Execution& execution, absl::Time now);

  Queue silent_;     // nothing of the input has come; the oldest first
  Queue uploading_;  // some has; the longest without more first
  Queue preparing_;  // all has, and the operator is being compiled
  Queue small_;      // for the device, in order
  Queue large_;
  uint32_t running_small_ = 0;
  uint64_t running_large_bytes_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTION_QUEUES_H_
