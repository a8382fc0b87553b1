// The state of one execution.
#ifndef OPMILL_SERVER_EXECUTION_EXECUTION_H_
#define OPMILL_SERVER_EXECUTION_EXECUTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/device.h"
#include "kernels/program/program.h"
#include "proto/payload.h"
#include "server/execution/caller_account.h"
#include "server/execution/execution_progress.h"
#include "server/execution/execution_queues.h"
#include "server/execution/input_source.h"
#include "server/execution/tensor_buffers.h"
#include "server/host/deadline_timer.h"
#include "server/models/requested_model.h"
#include "server/network/connections.h"
#include "server/observe/log.h"
#include "server/observe/statistics.h"
#include "server/tensors/tensor_store.h"

namespace opmill {

struct Batch;
class BatchGroup;
class Execution;

// The call that a request belongs to, and its caller.
struct RequestOrigin {
  absl::string_view rpc;  // a string literal
  std::string peer;
  bool is_http = false;                    // came through server/http/
  bool is_traced = false;                  // by server/http/, if it becomes no call
  std::string caller;                      // from token or certificate; empty if neither is used
  std::optional<uint32_t> user;            // that the caller's process runs as, if known
  std::string traceparent;                 // empty if the caller sent none
  std::shared_ptr<Connection> connection;  // counts as in use; null if untracked
  // Of the caller. Null until the executor has set it, in Begin or BeginStream.
  std::shared_ptr<CallerAccount> account;
  // The place among the open streams. Null except in the origin of the stream itself.
  std::shared_ptr<void> stream_place;
  uint64_t execution_id = 0;
  absl::Time arrived = SteadyNow();  // arrival of the request message, or of the call before that
  // Arrival of the call, of one message; InfinitePast for those of streams.
  absl::Time called_at = absl::InfinitePast();
  // When the executor was first asked for room. InfinitePast: not yet.
  absl::Time asked_at = absl::InfinitePast();

  // Adds everything except the id and the time.
  void AddTo(LogLine& line) const;
};

struct KeptOutput {
  size_t output = 0;
  std::shared_ptr<TensorStore::Writing> writing;
};

struct ExecutionRequest {
  RequestOrigin origin;
  // What to compute, validated: an operator or a program. The executor makes a program of an
  // operator.
  std::optional<OperatorDesc> op;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const RequestedModel> model;  // null if the request describes an operator
  absl::Time deadline = absl::InfiniteFuture();
  std::vector<InputSource> sources;  // of its inputs; empty if all of them come in chunks
  std::vector<KeptOutput> kept;      // outputs that stay on the server, instead of being sent
  int32_t priority = 0;              // among the executions of its caller that wait for the device
  std::shared_ptr<RunProfile> profile = nullptr;  // as in Bindings
  // Called once, without any lock held, from any thread, possibly from within a call of the
  // executor. Either the results are ready to be streamed, or status() says why there are none.
  std::function<void(const std::shared_ptr<Execution>&)> on_ready;

  // False until it is known what to compute.
  bool has_program() const { return op.has_value() || program != nullptr; }
  // That may be computed together with those of other requests.
  uint32_t rows() const;
  // Null if the output is sent to the caller.
  TensorStore::Writing* WritingOf(size_t output) const;
  // The name of the model, or the descriptor as text.
  std::string description() const;
  // Null if it is no operator, or not known yet.
  const OperatorDesc* desc() const { return op.has_value() ? &*op : nullptr; }
  // Of the operator or program.
  std::vector<TensorDesc> InputTensors() const;
  std::vector<TensorDesc> OutputTensors() const;
};

// Only the executor moves it from stage to stage; all other code only reads it. Thread-safe.
class Execution {
 public:
  explicit Execution(ExecutionRequest request);

  const ExecutionRequest& request() const { return request_; }
  const std::vector<TensorDesc>& inputs() const { return inputs_; }
  const std::vector<TensorDesc>& outputs() const { return outputs_; }
  // The sizes without the padding of the buffers.
  const std::vector<uint64_t>& output_bytes() const { return output_bytes_; }

  // The accessors below return the values of ExecutionProgress.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return progress_.status();
  }
  // True while input is missing.
  bool uploading() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return progress_.stage() == Stage::kUploading;
  }
  absl::Duration stalled(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return progress_.stalled(now);
  }
  bool needs_no_input() const { return needs_no_input_; }
  // True if all input has arrived, even if the execution has ended.
  bool uploaded() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return progress_.upload().complete();
  }
  using Report = ExecutionProgress::Report;
  // The report so far. The download time counts until now, or until the end.
  Report report() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return progress_.report(SteadyNow());
  }
  // What the device reads and writes for it, weighted by the amount of computation; 0 until it is
  // ready for the device, or has begun its incremental run.
  uint64_t work_bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return work_bytes_;
  }
  // Of the compiled program, while it waits for the device; otherwise 0.
  uint64_t rounding() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops when it ends before its results are ready.
  std::stop_token abandoned() const { return abandon_.get_token(); }
  // Null if it is not joined with others.
  const std::shared_ptr<BatchGroup>& batch_group() const { return batch_group_; }
  // The descriptor as text, or the name of the model.
  std::shared_ptr<const std::string> description() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Null until the results are ready, and after the execution has ended.
  std::shared_ptr<BudgetedBuffer> output(size_t index) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ExecutionQueues;
  friend class Executor;

  // Where the bytes of a chunk go: into the buffer of its input, or into the incremental run.
  struct ChunkPlace {
    void Take(const Payload& data) const;

    std::shared_ptr<BudgetedBuffer> buffer;
    uint64_t offset = 0;
    std::shared_ptr<IncrementalRun> run;  // null if the input is kept
  };
  // `chunk` has passed Upload::Check, so it is uploading.
  ChunkPlace PlaceOf(const IncomingChunk& chunk) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Resident inputs, and those outputs that are written where they stay.
  void BindResident() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the device reads, writes and keeps for it. A broadcast input is few bytes and much work.
  uint64_t MemoryBytes(const ProgramCost& cost) const;

  const ExecutionRequest request_;
  const std::vector<TensorDesc> inputs_;
  const std::vector<TensorDesc> outputs_;
  std::vector<uint64_t> output_bytes_;  // never changes
  bool needs_no_input_ = false;         // the same
  std::stop_source abandon_;

  std::shared_ptr<BatchGroup> batch_group_;  // never changes once it has begun

  QueuePlace place_;  // guarded by the mutex of WaitingExecutions

  mutable absl::Mutex mutex_;
  DeadlineTimer::Handle deadline_ ABSL_GUARDED_BY(mutex_) = DeadlineTimer::kNone;
  ExecutionProgress progress_ ABSL_GUARDED_BY(mutex_);
  TensorBuffers buffers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const CompiledProgram> compiled_ ABSL_GUARDED_BY(mutex_);
  // Takes the input as it arrives; null if the device needs the whole input.
  std::shared_ptr<IncrementalRun> incremental_run_ ABSL_GUARDED_BY(mutex_);
  // Of the compiled operator; null until there is one.
  std::shared_ptr<const std::string> description_ ABSL_GUARDED_BY(mutex_);
  uint64_t work_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Batch> batch_ ABSL_GUARDED_BY(mutex_);  // from its close to the end of its run
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTION_H_
