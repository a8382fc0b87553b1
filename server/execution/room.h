// The places and the memory of executions and streams, which callers share.
#ifndef OPMILL_SERVER_EXECUTION_ROOM_H_
#define OPMILL_SERVER_EXECUTION_ROOM_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/engine/device.h"
#include "server/config/options.h"
#include "server/execution/admission.h"
#include "server/execution/caller_account.h"
#include "server/execution/execution.h"
#include "server/execution/memory_budget.h"
#include "server/execution/shared_limit.h"
#include "server/execution/tensor_buffers.h"
#include "server/execution/waiting_executions.h"
#include "server/observe/statistics.h"

namespace opmill {

// Thread-safe.
class Room {
 public:
  // All references must outlive it.
  Room(Device& device, const Admission& admission, WaitingExecutions& waiting,
       Statistics& statistics, const Limits& limits);

  // Sets the account of the origin, unless it has one.
  const std::shared_ptr<CallerAccount>& AccountOf(RequestOrigin& origin);

  // Takes the place of an execution, and its memory, of which only that of inputs is allocated.
  // If there is no room, calls `end` with executions that give up theirs. If there is still none,
  // returns ResourceExhausted.
  using EndExecution =
      absl::FunctionRef<void(const std::shared_ptr<Execution>&, const absl::Status& why)>;
  absl::StatusOr<TensorBuffers> Take(const BufferSizes& sizes,
                                     const std::shared_ptr<CallerAccount>& caller, EndExecution end)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the place of an execution. Its buffers return their memory.
  void ReturnPlace(CallerAccount& caller) { executions_.Return(caller.executions, 1); }

  // Gives a stream its place: sets the one of its origin, which returns it.
  absl::Status TakeStream(RequestOrigin& origin);

  // A caller that Take has refused since the last call; the one that holds least. Null if there is
  // none.
  std::shared_ptr<const CallerAccount> TakeRefused() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `owner` has more than its share of what `asking` needs.
  bool ExceedsShare(const CallerAccount& owner, const CallerAccount& asking) const;

  uint64_t executions() const { return executions_.used(); }
  const MemoryBudget& memory() const { return memory_; }
  const CallerAccounts& callers() const { return callers_; }

 private:
  absl::StatusOr<TensorBuffers> Reserve(const BufferSizes& sizes,
                                        const std::shared_ptr<CallerAccount>& caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(caller->begin_mutex);
  bool EndStalled(const CallerAccount& caller, EndExecution end);
  void RememberRefused(const std::shared_ptr<CallerAccount>& caller) ABSL_LOCKS_EXCLUDED(mutex_);

  Device& device_;
  const Admission& admission_;
  WaitingExecutions& waiting_;
  MemoryBudget memory_;
  CallerAccounts callers_;
  SharedLimit executions_;
  const std::shared_ptr<SharedLimit> streams_;  // shared with the places that it has given

  absl::Mutex mutex_;
  std::shared_ptr<const CallerAccount> refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_ROOM_H_
