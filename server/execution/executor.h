// Moves executions from the first byte of input to the last byte of output: admission, upload,
// compilation, the queue for the device, and the end, which may come at any stage.
#ifndef OPMILL_SERVER_EXECUTION_EXECUTOR_H_
#define OPMILL_SERVER_EXECUTION_EXECUTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "proto/payload.h"
#include "server/config/options.h"
#include "server/execution/admission.h"
#include "server/execution/caller_account.h"
#include "server/execution/deadline_timer.h"
#include "server/execution/execution.h"
#include "server/execution/execution_queues.h"
#include "server/execution/memory_budget.h"
#include "server/execution/shared_limit.h"
#include "server/execution/tensor_buffers.h"
#include "server/execution/worker_pool.h"
#include "server/observe/statistics.h"

namespace opmill {

// Thread-safe, except that the chunks of one execution must come from one thread at a time. Callers
// must not hold a lock that an on_ready callback acquires.
class Executor {
 public:
  // `device`, `cache` and `statistics` must outlive the executor.
  Executor(Device& device, OperatorCache& cache, Statistics& statistics, const Limits& limits);
  // All executions must have ended. Waits for abandoned runs to finish.
  ~Executor();

  // Reserves memory for the execution and looks up its operator, which is compiled if necessary
  // while the input arrives. If there is no room, executions that wait for their callers' input are
  // ended to make room. If there is still none, returns ResourceExhausted, with a retry delay if a
  // retry may succeed. Returns Unavailable while draining. Takes the request only on success.
  absl::StatusOr<std::shared_ptr<Execution>> Begin(ExecutionRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives an ExecuteStream call its place among the streams. Sets the account and the place of the
  // call's origin, which returns the place.
  absl::Status BeginStream(RequestOrigin& origin);

  // Copies the chunk into the input buffer; the last chunk sends the execution to the device. In an
  // incremental run, the device computes with the chunk instead, and the last chunk completes the
  // outputs. A chunk that does not fit ends the execution. `field` is the path of the chunk in its
  // message: "chunks[0]".
  void Receive(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk,
               absl::string_view field) ABSL_LOCKS_EXCLUDED(mutex_);

  // Copies all inputs on threads of the executor: `read` fills `to` with the bytes of an input from
  // `offset` on, for several parts at a time. An error that it returns ends the execution. Chunks
  // must not be received as well, and the request must say input_is_shared.
  using ReadInput =
      std::function<absl::Status(size_t input, uint64_t offset, absl::Span<std::byte> to)>;
  void ReceiveFrom(const std::shared_ptr<Execution>& execution, ReadInput read)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `step` on threads of the executor until it returns false, one call at a time, alternating
  // with other work. A step should take about a millisecond.
  void PostSteps(std::function<bool()> step);

  // Ends the execution with an error if input is missing. `what` says why no more chunks follow
  // ("end_of_inputs came").
  void EndInputs(const std::shared_ptr<Execution>& execution, absl::string_view what)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the execution with this error at any stage, unless it has ended. Its run is abandoned.
  void Cancel(const std::shared_ptr<Execution>& execution, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All of the output has been sent.
  void Finish(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);

  // Compiles on a thread of the executor, which also calls `done`. Operators that executions wait
  // for come first. Does nothing if `cancelled` is true by then. If this returns an error, `done`
  // is not called.
  absl::Status Compile(OperatorDesc desc, absl::Time deadline,
                       std::shared_ptr<const std::atomic<bool>> cancelled,
                       std::function<void(absl::StatusOr<CachedOperator>)> done);

  // Counts and logs a request that did not become an execution. `desc` is null if it could not be
  // decoded.
  void Refuse(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why);

  // Makes Begin refuse new executions.
  void Drain() { draining_ = true; }
  // A caller that Begin has refused for lack of room since the last call; the one that holds least.
  // Null if there is none.
  std::shared_ptr<const CallerAccount> TakeRefused() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `owner` has more than its share of the room that `asking` needs.
  bool ExceedsShare(const CallerAccount& owner, const CallerAccount& asking) const;
  // While true, Begin and Compile refuse. Returns the previous value.
  bool SetShortOfMemory(bool is_short) { return short_of_memory_.exchange(is_short); }

  uint32_t open_executions() const { return static_cast<uint32_t>(executions_.used()); }
  // True if the device still works for an execution that has ended. It finishes the parts of a run
  // that it had when the run was abandoned.
  bool has_runs() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return runs_ > 0;
  }
  const MemoryBudget& memory() const { return memory_; }
  const CallerAccounts& callers() const { return callers_; }
  DeadlineTimer& timer() { return timer_; }

 private:
  Admission::Load load() const;
  // The memory of an incremental run; 0 if the device needs the whole input.
  uint64_t IncrementalBytes(const OperatorDesc& desc,
                            const std::optional<CachedOperator>& found) const;
  const std::shared_ptr<CallerAccount>& AccountOf(RequestOrigin& origin);
  absl::StatusOr<TensorBuffers> TakeRoom(const BufferSizes& sizes,
                                         const std::shared_ptr<CallerAccount>& caller)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<TensorBuffers> Reserve(const BufferSizes& sizes,
                                        const std::shared_ptr<CallerAccount>& caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(caller->begin_mutex);
  bool EndStalled(absl::Time now, const CallerAccount& caller) ABSL_LOCKS_EXCLUDED(mutex_);
  void RememberRefused(const std::shared_ptr<CallerAccount>& caller) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveQueue(const Execution& execution);
  struct InputCopy;
  bool CopyPiece(InputCopy& copy) ABSL_LOCKS_EXCLUDED(mutex_);
  // The bytes of `chunk` are in the buffer, or the incremental run has them.
  void Arrived(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `found`: its operator, if that was cached.
  void Prepare(const std::shared_ptr<Execution>& execution, std::optional<CachedOperator> found)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void PrepareIncremental(const std::shared_ptr<Execution>& execution,
                          std::optional<CachedOperator> found) ABSL_LOCKS_EXCLUDED(mutex_);
  void Prepared(const std::shared_ptr<Execution>& execution, absl::StatusOr<CachedOperator> found)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool AllocateOutputs(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void Enqueue(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishIncremental(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void SubmitReady() ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Execution> NextReady() ABSL_LOCKS_EXCLUDED(mutex_);
  void Submit(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunEnded(const std::shared_ptr<Execution>& execution,
                const absl::StatusOr<RunStatistics>& result) ABSL_LOCKS_EXCLUDED(mutex_);
  void Computed(const std::shared_ptr<Execution>& execution,
                const absl::StatusOr<RunStatistics>& result) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const std::shared_ptr<Execution>& execution, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Device& device_;
  OperatorCache& cache_;
  Statistics& statistics_;
  const Admission admission_;
  MemoryBudget memory_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> short_of_memory_ = false;
  CallerAccounts callers_;
  SharedLimit executions_;
  SharedLimit queued_;                          // executions that wait for the device
  const std::shared_ptr<SharedLimit> streams_;  // shared with the places that it has given
  std::atomic<uint32_t> compilations_ = 0;      // requested through Compile

  absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(&Execution::mutex_);
  ExecutionQueues queues_ ABSL_GUARDED_BY(mutex_);
  uint32_t runs_ ABSL_GUARDED_BY(mutex_) = 0;  // runs whose callbacks have not returned
  std::shared_ptr<const CallerAccount> refused_ ABSL_GUARDED_BY(mutex_);

  DeadlineTimer timer_;  // timer_ and workers_ last: their threads use the members above
  WorkerPool workers_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTOR_H_
