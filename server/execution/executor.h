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
#include "server/execution/batches.h"
#include "server/execution/caller_account.h"
#include "server/execution/compilations.h"
#include "server/execution/execution.h"
#include "server/execution/input_copy.h"
#include "server/execution/joined_run.h"
#include "server/execution/memory_budget.h"
#include "server/execution/room.h"
#include "server/execution/shared_limit.h"
#include "server/execution/waiting_executions.h"
#include "server/host/deadline_timer.h"
#include "server/host/worker_pool.h"
#include "server/observe/statistics.h"
#include "server/traces/traces.h"

namespace opmill {

// Thread-safe, except that the chunks of one execution must come from one thread at a time. Callers
// must not hold a lock that an on_ready callback acquires.
class Executor {
 public:
  // `device`, `cache`, `statistics` and `traces` must outlive the executor. `traces` is null if no
  // call is traced.
  Executor(Device& device, OperatorCache& cache, Statistics& statistics, const Limits& limits,
           Traces* traces = nullptr);
  // All executions must have ended. Waits for abandoned runs to finish.
  ~Executor() { waiting_.AwaitRuns(); }

  // Reserves memory for the execution and looks up its operator, which is compiled if necessary
  // while the input arrives. Starts to read the inputs that have a source to read. If there is no
  // room, executions that wait for their callers' input are ended to make room. If there is still
  // none, returns ResourceExhausted, with a retry delay if a retry may succeed. Returns Unavailable
  // while draining. Takes the request only on success.
  absl::StatusOr<std::shared_ptr<Execution>> Begin(ExecutionRequest& request);

  // Gives an ExecuteStream call its place among the streams. Sets the account and the place of the
  // call's origin, which returns the place.
  absl::Status BeginStream(RequestOrigin& origin) { return room_.TakeStream(origin); }

  // Copies the chunk into the input buffer; the last chunk sends the execution to the device. In an
  // incremental run, the device computes with the chunk instead, and the last chunk completes the
  // outputs. A chunk that does not fit ends the execution. Its input must have no source to read.
  // `field` is the path of the chunk in its
  // message: "chunks[0]".
  void Receive(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk,
               absl::string_view field);

  // Starts an execution whose inputs are all resident, or that has none, such as that of a model
  // all of whose inputs are values. No effect on others. To be called once for each execution, when
  // its on_ready may be called.
  void ReceiveNone(const std::shared_ptr<Execution>& execution) {
    if (execution->needs_no_input()) Arrived(execution, {});
  }

  // Calls `step` on threads of the executor until it returns false, one call at a time, alternating
  // with other work. A step should take about a millisecond.
  void PostSteps(std::function<bool()> step) { PostSteps(std::move(step), /*are_long=*/false); }
  // The same for steps that may take seconds.
  void PostLongSteps(std::function<bool()> step) { PostSteps(std::move(step), /*are_long=*/true); }

  // Ends the execution with an error if input is missing. `what` says why no more chunks follow
  // ("end_of_inputs came").
  void EndInputs(const std::shared_ptr<Execution>& execution, absl::string_view what);

  // Ends the execution with this error at any stage, unless it has ended. Its run is abandoned.
  void Cancel(const std::shared_ptr<Execution>& execution, const absl::Status& why);

  // All of the output has been sent.
  void Finish(const std::shared_ptr<Execution>& execution);

  // As Compilations::Post.
  absl::Status Compile(Compilations::Wanted wanted, OperatorCache::Done done) {
    return compilations_.Post(std::move(wanted), load(), std::move(done));
  }

  // Counts and logs a request that did not become an execution. `desc` is null if it could not be
  // decoded.
  void Refuse(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why);
  // Traces a call without an execution that has succeeded.
  void Answered(const RequestOrigin& origin);

  // Makes Begin refuse new executions, and stops work for models that no caller waits for.
  void Drain() {
    draining_ = true;
    compile_limit_.StopBackground();
  }
  // As in Room, of the callers that Begin has refused.
  std::shared_ptr<const CallerAccount> TakeRefused() { return room_.TakeRefused(); }
  bool ExceedsShare(const CallerAccount& owner, const CallerAccount& asking) const {
    return room_.ExceedsShare(owner, asking);
  }
  // While true, Begin and Compile refuse. Returns the previous value.
  bool SetShortOfMemory(bool is_short) { return short_of_memory_.exchange(is_short); }

  uint32_t open_executions() const { return static_cast<uint32_t>(room_.executions()); }
  // True if the device still works for an execution that has ended. It finishes the parts of a run
  // that it had when the run was abandoned.
  bool has_runs() { return waiting_.has_runs(); }
  // Null if no call is traced.
  Traces* traces() const { return traces_; }
  const MemoryBudget& memory() const { return room_.memory(); }
  const CallerAccounts& callers() const { return room_.callers(); }
  DeadlineTimer& timer() { return timer_; }
  const CompileLimit& compile_limit() const { return compile_limit_; }
  uint32_t workers() const { return workers_.threads(); }
  // Sets the account of the origin, unless it has one.
  const std::shared_ptr<CallerAccount>& AccountOf(RequestOrigin& origin) {
    return room_.AccountOf(origin);
  }

 private:
  Admission::Load load() const;
  void PostSteps(std::function<bool()> step, bool are_long);
  void EndAtDeadline(const std::shared_ptr<Execution>& execution);
  void Prepare(const std::shared_ptr<Execution>& execution, Compilations::Found found);
  void Prepared(const std::shared_ptr<Execution>& execution, absl::StatusOr<CachedOperator> found);
  void BeginIncremental(const std::shared_ptr<Execution>& execution);
  void ReadInputs(const std::shared_ptr<Execution>& execution);
  bool CopyPart(const std::shared_ptr<Execution>& execution, InputCopy& copy);
  // The bytes of `chunk` are in the buffer, or the incremental run has them.
  void Arrived(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk);
  bool AllocateOutputs(const std::shared_ptr<Execution>& execution);
  void Enqueue(const std::shared_ptr<Execution>& execution);
  void FinishIncremental(const std::shared_ptr<Execution>& execution);
  void SubmitReady();
  void Submit(const std::shared_ptr<Execution>& execution);
  void SubmitBatch(const std::vector<std::shared_ptr<Execution>>& members,
                   const std::shared_ptr<Batch>& batch);
  void SubmitJoined(Batch& batch);
  void RunEach(std::vector<JoinedMember>& members);
  void RunAlone(JoinedMember& member);
  void JoinedRunEnded(JoinedRun& run, const absl::StatusOr<RunStatistics>& result);
  static void LeaveBatch(Execution& execution);
  static absl::Status Keep(Execution& execution);
  void Start(const std::shared_ptr<Execution>& execution,
             std::shared_ptr<const CompiledProgram> compiled, Bindings bindings);
  static void CountRun(const Execution& execution, uint64_t rows,
                       const absl::StatusOr<RunStatistics>& result);
  // False if it has ended.
  bool StartRunning(Execution& execution) ABSL_EXCLUSIVE_LOCKS_REQUIRED(execution.mutex_);
  void LeaveQueue(const Execution& execution);
  void RunEnded(const std::shared_ptr<Execution>& execution,
                const absl::StatusOr<RunStatistics>& result);
  void Computed(const std::shared_ptr<Execution>& execution,
                const absl::StatusOr<RunStatistics>& result);
  void Ready(const std::shared_ptr<Execution>& execution, const RunStatistics& result);
  void End(const std::shared_ptr<Execution>& execution, const absl::Status& status);

  Device& device_;
  Statistics& statistics_;
  Traces* const traces_;
  const Admission admission_;
  WaitingExecutions waiting_;
  Room room_;
  SharedLimit queued_;  // executions that wait for the device
  std::atomic<bool> draining_ = false;
  std::atomic<bool> short_of_memory_ = false;
  CompileLimit compile_limit_;
  Compilations compilations_;

  Batches batches_;

  DeadlineTimer timer_;  // timer_ and workers_ last: their threads use the members above
  WorkerPool workers_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTOR_H_
