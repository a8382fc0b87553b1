// Takes executions from the first byte of input to the last byte of output: admission, upload,
// compilation, the queue to the device, and the end, which may come at any stage.
#ifndef OPMILL_SERVER_EXECUTION_EXECUTOR_H_
#define OPMILL_SERVER_EXECUTION_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "proto/payload.h"
#include "server/config/options.h"
#include "server/execution/admission.h"
#include "server/execution/deadline_timer.h"
#include "server/execution/execution.h"
#include "server/execution/execution_queues.h"
#include "server/execution/memory_budget.h"
#include "server/execution/tensor_buffers.h"
#include "server/execution/worker_pool.h"
#include "server/observe/statistics.h"

namespace opmill {

// Thread-safe, except that the chunks of one execution must come from one thread at a time. Callers
// must not hold a lock that an on_ready callback acquires.
class Executor {
 public:
  // `device`, `cache` and `statistics` outlive the executor.
  Executor(Device& device, OperatorCache& cache, Statistics& statistics, const Limits& limits);
  // Every execution has ended; waits for runs that nobody waits for any more.
  ~Executor();

  // Makes room for the execution and looks for its operator, compiling it if need be while the
  // input comes. Where there is no room, those end that wait for their callers' input.
  // ResourceExhausted when there still is none, with a retry delay where there may be later;
  // Unavailable while draining. Takes the request, unless it refuses it.
  absl::StatusOr<std::shared_ptr<Execution>> Begin(ExecutionRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Copies the chunk to its place; the last one sends the execution to the device. A chunk that
  // does not fit ends the execution. `field` is the chunk's path in its message: "chunks[0]".
  void Receive(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk,
               absl::string_view field) ABSL_LOCKS_EXCLUDED(mutex_);

  // No more chunks follow, says `what` ("end_of_inputs came"): one that lacks bytes ends.
  void EndInputs(const std::shared_ptr<Execution>& execution, absl::string_view what)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends it with this error wherever it is, unless it has ended. Its run is abandoned.
  void Cancel(const std::shared_ptr<Execution>& execution, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All of its output has left.
  void Finish(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);

  // Plans and compiles on a thread of the executor, which also calls back; after the operators that
  // executions wait for, and not at all if `cancelled` by then. An error is a refusal, and no call
  // back comes.
  absl::Status Compile(OperatorDesc desc, absl::Time deadline,
                       std::shared_ptr<const std::atomic<bool>> cancelled,
                       std::function<void(absl::StatusOr<CachedOperator>)> done);

  // Counts and logs a request that did not become an execution; without a descriptor, one that
  // could not be read.
  void Refuse(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why);

  // From now on Begin refuses.
  void Drain() { draining_ = true; }
  // While it is, Begin and Compile refuse. Answers what it was.
  bool SetShortOfMemory(bool is_short) { return short_of_memory_.exchange(is_short); }

  uint32_t open_executions() const { return open_; }
  // Does the device still work for an execution that has ended? It finishes what it was given of a
  // run before the run was abandoned.
  bool has_runs() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return runs_ > 0;
  }
  const MemoryBudget& memory() const { return memory_; }
  DeadlineTimer& timer() { return timer_; }

 private:
  Admission::Load load() const;
  absl::StatusOr<TensorBuffers> TakeRoom(const std::vector<TensorDesc>& inputs,
                                         const std::vector<TensorDesc>& outputs);
  bool EndStalled(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Prepare(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void Prepared(const std::shared_ptr<Execution>& execution, absl::StatusOr<CachedOperator> found)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Enqueue(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void SubmitReady() ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Execution> NextReady() ABSL_LOCKS_EXCLUDED(mutex_);
  void Submit(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
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
  std::atomic<uint32_t> open_ = 0;
  std::atomic<uint32_t> compilations_ = 0;  // asked for by Compile

  absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(&Execution::mutex_);
  ExecutionQueues queues_ ABSL_GUARDED_BY(mutex_);
  uint32_t runs_ ABSL_GUARDED_BY(mutex_) = 0;  // whose callbacks have not returned

  DeadlineTimer timer_;  // last: their threads use everything above
  WorkerPool workers_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTOR_H_
