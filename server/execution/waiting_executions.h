// The executions that wait for input, their operator or the device, and the runs of the device.
#ifndef OPMILL_SERVER_EXECUTION_WAITING_EXECUTIONS_H_
#define OPMILL_SERVER_EXECUTION_WAITING_EXECUTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/execution.h"
#include "server/execution/execution_queues.h"

namespace opmill {

// ExecutionQueues with a lock, under which the accounts' paces are too. Thread-safe; the lock may
// be taken under that of an execution.
class WaitingExecutions {
 public:
  void Enter(const std::shared_ptr<Execution>& execution);
  // `bytes` of its input have come. `awaits_caller`: it waits for its caller to send more.
  void Received(Execution& execution, uint64_t bytes, bool awaits_caller);
  // It does not wait for its caller.
  void AwaitServer(Execution& execution);
  // As ExecutionQueues::AwaitDevice.
  void AwaitDevice(Execution& execution, uint64_t memory_bytes, uint64_t run_bytes);
  // The members of a batch, at once.
  struct Work {
    std::shared_ptr<Execution> execution;
    uint64_t memory_bytes = 0;
    uint64_t run_bytes = 0;
  };
  void AwaitDevice(const std::vector<Work>& works);
  void Remove(Execution& execution);

  using Stall = ExecutionQueues::Stall;
  // As ExecutionQueues::FindStalled. An upload that is slow is stalled only if its caller is.
  ExecutionQueues::Stalled FindStalled(
      absl::FunctionRef<bool(const CallerAccount& owner, Stall why)> may_end);

  // Calls `submit` with one execution after the other while the device has room for them. Each of
  // these calls is followed by RunEnded, possibly within it, and by CallbackEnded, after which the
  // destructor no longer waits for it.
  void SubmitReady(absl::FunctionRef<void(const std::shared_ptr<Execution>&)> submit);
  // As ExecutionQueues::TakeAlong.
  void TakeAlong(const std::vector<std::shared_ptr<Execution>>& executions);
  // One more run; CallbackEnded follows.
  void RunBegins();
  void RunEnded(Execution& execution);
  void CallbackEnded();
  // True between the two.
  bool has_runs();
  void AwaitRuns();

 private:
  std::shared_ptr<Execution> Next();

  absl::Mutex mutex_;
  ExecutionQueues queues_ ABSL_GUARDED_BY(mutex_);
  uint32_t runs_ ABSL_GUARDED_BY(mutex_) = 0;  // whose callbacks have not returned
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_WAITING_EXECUTIONS_H_
