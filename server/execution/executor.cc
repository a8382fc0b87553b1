#include "server/execution/executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#include "server/api/grpc_status.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

constexpr uint32_t kMaxWaitingCompilations = 256;

constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);
// Where nobody else uses memory, there will not be more of it later.
absl::Status NoMemory(absl::Status status, uint32_t other_executions) {
  if (other_executions == 0) return status;
  return WithRetryDelay(std::move(status), kRetryDelay);
}

// What the device reads, writes and keeps for it. A broadcast input is few bytes and much work.
uint64_t WorkBytes(const Execution& execution, const OperatorCost& cost) {
  uint64_t bytes = 0;
  for (const TensorDesc& input : execution.desc().inputs) {
    bytes += std::max(SpannedBytes(input), ElementCount(input) * ElementBytes(input.data_type));
  }
  for (const uint64_t output : execution.output_bytes()) bytes += output;
  return bytes + cost.scratch_bytes;
}

}  // namespace

absl::Status Draining() {
  return absl::UnavailableError(
      "The server is draining: it ends what it has begun and takes nothing new.");
}

Executor::Executor(Device& device, OperatorCache& cache, Statistics& statistics,
                   const Limits& limits)
    : device_(device),
      cache_(cache),
      statistics_(statistics),
      limits_(limits),
      memory_(limits.max_bytes_in_flight),
      workers_(std::max(2u, std::thread::hardware_concurrency())) {}

Executor::~Executor() {
  const auto all_runs_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runs_ == 0; };
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&all_runs_ended));
}

absl::StatusOr<std::shared_ptr<Execution>> Executor::Begin(ExecutionRequest& request) {
  std::vector<TensorDesc> output_descs = OutputsOf(request.desc);
  RETURN_IF_ERROR(Admit(request, output_descs));
  const std::vector<TensorDesc> input_descs = request.desc.inputs;
  absl::StatusOr<Room> room = TakeRoom(input_descs, output_descs);
  while (absl::IsResourceExhausted(room.status()) && EndStalled(absl::Now())) {
    room = TakeRoom(input_descs, output_descs);
  }
  if (!room.ok()) return room.status();
  auto execution = std::make_shared<Execution>(std::move(request), std::move(output_descs));
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    execution->inputs_ = std::move(room->inputs);
    execution->outputs_bound_ = std::move(room->outputs);
    const absl::MutexLock lock(&mutex_);
    queues_.Enter(execution, absl::Now());
  }
  statistics_.Enter(Stage::kUploading);
  if (execution->request().deadline != absl::InfiniteFuture()) {
    // The timer may call back before the handle is stored: then there is nothing left to remove.
    const std::weak_ptr<Execution> weak = execution;
    const DeadlineTimer::Handle handle = timer_.Add(execution->request().deadline, [this, weak] {
      if (const std::shared_ptr<Execution> late = weak.lock()) {
        Cancel(late, absl::DeadlineExceededError("The execution's time is over."));
      }
    });
    const absl::MutexLock lock(&execution->mutex_);
    execution->deadline_ = handle;
  }
  Prepare(execution);
  return execution;
}

absl::StatusOr<Executor::Room> Executor::TakeRoom(const std::vector<TensorDesc>& inputs,
                                                  const std::vector<TensorDesc>& outputs) {
  Room room;
  for (const TensorDesc& input : inputs) {
    room.inputs.push_back(std::make_shared<BudgetedBuffer>());
    ASSIGN_OR_RETURN(room.inputs.back()->share, memory_.Take(RequiredBytes(input)));
  }
  for (const TensorDesc& output : outputs) {
    room.outputs.push_back(std::make_shared<BudgetedBuffer>());
    ASSIGN_OR_RETURN(room.outputs.back()->share, memory_.Take(RequiredBytes(output)));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StatusOr<std::shared_ptr<HostBuffer>> allocated =
        device_.Allocate(RequiredBytes(inputs[i]), BufferUse::kInput);
    if (!allocated.ok()) return NoMemory(allocated.status(), open_);
    room.inputs[i]->buffer = *std::move(allocated);
  }
  if (open_.fetch_add(1) < limits_.max_executions) return room;
  --open_;
  return WithRetryDelay(
      absl::ResourceExhaustedError(absl::StrCat("The server has ", limits_.max_executions,
                                                " executions (max_executions) under way.")),
      kRetryDelay);
}

// Ends some that hold room and get no input; false where none has waited long enough.
bool Executor::EndStalled(absl::Time now) {
  std::vector<std::shared_ptr<Execution>> stalled;
  {
    const absl::MutexLock lock(&mutex_);
    stalled = queues_.Stalled(now);
  }
  for (const auto& execution : stalled) {
    End(execution,
        WithRetryDelay(absl::ResourceExhaustedError(
                           "The server is full, and gave the room of this execution, for "
                           "which no input came, to another."),
                       kRetryDelay));
  }
  return !stalled.empty();
}

absl::Status Executor::Admit(const ExecutionRequest& request,
                             const std::vector<TensorDesc>& outputs) const {
  if (draining_) return Draining();
  if (request.deadline <= absl::Now()) {
    return absl::DeadlineExceededError("The execution's time is over before it could begin.");
  }
  RETURN_IF_ERROR(CheckSize(request.desc.inputs, outputs));
  RETURN_IF_ERROR(CheckMemory());
  if (statistics_.in_stage(Stage::kQueued) < limits_.max_queued) return absl::OkStatus();
  return WithRetryDelay(
      absl::ResourceExhaustedError(absl::StrCat("The server has ", limits_.max_queued,
                                                " executions (max_queued) waiting for the "
                                                "device.")),
      kRetryDelay);
}

absl::Status Executor::CheckMemory() const {
  if (!short_of_memory_) return absl::OkStatus();
  return WithRetryDelay(absl::ResourceExhaustedError(absl::StrCat(
                            "The server has taken nearly all of the ", limits_.memory_limit,
                            " bytes (memory_limit) that it may.")),
                        kRetryDelay);
}

absl::Status Executor::CheckSize(const std::vector<TensorDesc>& inputs,
                                 const std::vector<TensorDesc>& outputs) const {
  uint64_t total = 0;
  uint64_t largest = 0;
  for (const std::vector<TensorDesc>* const tensors : {&inputs, &outputs}) {
    for (const TensorDesc& tensor : *tensors) {
      const uint64_t bytes = RequiredBytes(tensor);
      total += bytes;
      largest = std::max(largest, bytes);
    }
  }
  if (largest <= limits_.max_tensor_bytes) return memory_.Check(total);
  return absl::ResourceExhaustedError(absl::StrCat("A tensor of ", largest,
                                                   " bytes is larger than max_tensor_bytes (",
                                                   limits_.max_tensor_bytes, ")."));
}

void Executor::Prepare(const std::shared_ptr<Execution>& execution) {
  if (std::optional<CachedOperator> found = cache_.Find(execution->desc())) {
    Prepared(execution, *std::move(found));
    return;
  }
  workers_.Post([this, execution] {
    if (!execution->status().ok()) return;
    Prepared(execution, cache_.Get(execution->desc(), execution->request().deadline));
  });
}

void Executor::Prepared(const std::shared_ptr<Execution>& execution,
                        absl::StatusOr<CachedOperator> found) {
  if (!found.ok()) {
    End(execution, found.status());
    return;
  }
  bool complete = false;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    execution->compiled_ = std::move(found->compiled);
    complete = execution->progress_.Prepare(found->was_cached, found->duration);
  }
  if (complete) Enqueue(execution);
}

void Executor::Receive(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk,
                       absl::string_view field) {
  std::shared_ptr<BudgetedBuffer> input;
  uint64_t received = 0;
  absl::Status fits;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    const Upload& upload = execution->progress_.upload();
    fits = upload.Check(chunk, field);
    if (fits.ok()) {  // so it is uploading
      input = execution->inputs_[chunk.tensor_index];
      received = upload.received(chunk.tensor_index);
    }
  }
  if (!fits.ok()) {
    End(execution, fits);
    return;
  }
  chunk.data.CopyTo(input->buffer->bytes().data() + received);
  using Received = ExecutionProgress::Received;
  Received then = Received::kMore;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    then = execution->progress_.Receive(chunk, absl::Now());
    if (then != Received::kMore) {
      statistics_.Leave(Stage::kUploading);
      statistics_.Enter(Stage::kQueued);
    }
    const absl::MutexLock queue_lock(&mutex_);
    if (then == Received::kMore) {
      queues_.AwaitInput(*execution, absl::Now());
    } else {
      queues_.AwaitOperator(*execution, absl::Now());
    }
  }
  if (then == Received::kEnqueue) Enqueue(execution);
}

void Executor::EndInputs(const std::shared_ptr<Execution>& execution, absl::string_view what) {
  absl::Status missing;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.stage() != Stage::kUploading) return;
    missing = execution->progress_.upload().Missing(what);
  }
  End(execution, missing);
}

// Comes once: from whichever of Prepared and the last Receive is the second.
void Executor::Enqueue(const std::shared_ptr<Execution>& execution) {
  for (size_t i = 0; i < execution->outputs_.size(); ++i) {
    absl::StatusOr<std::shared_ptr<HostBuffer>> allocated =
        device_.Allocate(RequiredBytes(execution->outputs_[i]), BufferUse::kOutput);
    if (!allocated.ok()) {
      End(execution, NoMemory(allocated.status(), open_ - 1));
      return;
    }
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    execution->outputs_bound_[i]->buffer = *std::move(allocated);
  }
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    if (!execution->progress_.Enqueue(absl::Now())) return;
    const absl::MutexLock lock(&mutex_);
    queues_.AwaitDevice(*execution, WorkBytes(*execution, execution->compiled_->cost()),
                        absl::Now());
  }
  SubmitReady();
}

std::shared_ptr<Execution> Executor::NextReady() {
  const absl::MutexLock lock(&mutex_);
  return queues_.NextForDevice();
}

void Executor::SubmitReady() {
  // A run that ends within Device::Run comes back here from its callback. The loop below goes on
  // with the next one; a call of Run from there would have to leave it to another thread.
  thread_local const Executor* submitting = nullptr;
  if (submitting == this) return;
  const Executor* const outer = std::exchange(submitting, this);
  while (const std::shared_ptr<Execution> next = NextReady()) Submit(next);
  submitting = outer;
}

void Executor::Submit(const std::shared_ptr<Execution>& execution) {
  Bindings bindings;
  std::shared_ptr<const CompiledOperator> compiled;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.Submit(absl::Now())) {
      compiled = std::move(execution->compiled_);
      // The run holds a buffer and its share of the budget as one.
      const auto shared = [](const std::shared_ptr<BudgetedBuffer>& buffer) {
        return std::shared_ptr<HostBuffer>(buffer, buffer->buffer.get());
      };
      for (const auto& input : execution->inputs_) bindings.inputs.push_back(shared(input));
      for (const auto& output : execution->outputs_bound_) {
        bindings.outputs.push_back(shared(output));
      }
      execution->inputs_.clear();
      statistics_.Leave(Stage::kQueued);
      statistics_.Enter(Stage::kRunning);
    }
  }
  const bool ended = compiled == nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    if (ended) {
      queues_.RunEnded(*execution);
    } else {
      ++runs_;
    }
  }
  if (ended) return;
  device_.Run(std::move(compiled), std::move(bindings), execution->abandon_run_.get_token(),
              [this, execution](const absl::StatusOr<RunStatistics>& result) {
                Computed(execution, result);
                const absl::MutexLock lock(&mutex_);
                --runs_;
              });
}

void Executor::Computed(const std::shared_ptr<Execution>& execution,
                        const absl::StatusOr<RunStatistics>& result) {
  {
    const absl::MutexLock lock(&mutex_);
    queues_.RunEnded(*execution);
  }
  SubmitReady();
  if (!result.ok()) {
    // What was compiled for a lost device is of no use to the next.
    if (absl::IsUnavailable(result.status())) workers_.Post([this] { cache_.Invalidate(); });
    const bool is_short = absl::IsResourceExhausted(result.status());
    End(execution, is_short ? NoMemory(result.status(), open_ - 1) : result.status());
    return;
  }
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (!execution->progress_.Compute(*result, absl::Now())) return;
    statistics_.Leave(Stage::kRunning);
    statistics_.Enter(Stage::kStreaming);
  }
  execution->request().on_ready(execution);
}

void Executor::Cancel(const std::shared_ptr<Execution>& execution, const absl::Status& why) {
  End(execution, why);
}

void Executor::Finish(const std::shared_ptr<Execution>& execution) {
  End(execution, absl::OkStatus());
}

void Executor::End(const std::shared_ptr<Execution>& execution, const absl::Status& status) {
  Stage stage = Stage::kEnded;
  DeadlineTimer::Handle deadline = DeadlineTimer::kNone;
  // Let go outside the lock.
  std::vector<std::shared_ptr<BudgetedBuffer>> inputs;
  std::vector<std::shared_ptr<BudgetedBuffer>> outputs;
  std::shared_ptr<const CompiledOperator> compiled;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    const std::optional<Stage> was = execution->progress_.End(status, absl::Now());
    if (!was.has_value()) return;
    stage = *was;
    deadline = execution->deadline_;
    inputs.swap(execution->inputs_);
    outputs.swap(execution->outputs_bound_);
    compiled.swap(execution->compiled_);
    statistics_.Leave(stage);
    const absl::MutexLock lock(&mutex_);
    queues_.Remove(*execution);
  }
  timer_.Remove(deadline);
  if (stage == Stage::kRunning) execution->abandon_run_.request_stop();
  inputs.clear();
  outputs.clear();
  Settle(*execution, status);
  if (stage != Stage::kStreaming) execution->request().on_ready(execution);
  --open_;
}

void Executor::Settle(Execution& execution, const absl::Status& status) {
  Execution::Report report;
  absl::Duration total;
  uint64_t input_bytes = 0;
  {
    const absl::Time now = absl::Now();
    const absl::MutexLock lock(&execution.mutex_);
    report = execution.progress_.report(now);
    total = execution.progress_.total(now);
    input_bytes = execution.progress_.upload().received();
  }
  uint64_t output_bytes = 0;
  if (status.ok()) {
    for (const uint64_t bytes : execution.output_bytes()) output_bytes += bytes;
  }
  statistics_.AddEnd({.desc = execution.desc(),
                      .status = status,
                      .times = report.times,
                      .total = total,
                      .batch_size = report.batch_size,
                      .input_bytes = input_bytes,
                      .output_bytes = output_bytes});
  const RequestOrigin& origin = execution.request().origin;
  LogLine line(LogLevel::kInfo, "execute");
  origin.AddTo(line);
  line.Add("execution_id", origin.execution_id)
      .Add("operator", ToString(execution.desc()))
      .Add(status)
      .Add("upload", report.times.upload)
      .Add("compile", report.times.compile)
      .Add("queue", report.times.queue)
      .Add("compute", report.times.compute)
      .Add("download", report.times.download)
      .Add("input_bytes", input_bytes)
      .Add("output_bytes", output_bytes)
      .Add("batch_size", uint64_t{report.batch_size});
}

absl::Status Executor::Compile(OperatorDesc desc, absl::Time deadline,
                               std::shared_ptr<const std::atomic<bool>> cancelled,
                               std::function<void(absl::StatusOr<CachedOperator>)> done) {
  if (draining_) return Draining();
  RETURN_IF_ERROR(CheckSize(desc.inputs, OutputsOf(desc)));
  RETURN_IF_ERROR(CheckMemory());
  if (compilations_.fetch_add(1) >= kMaxWaitingCompilations) {
    --compilations_;
    return WithRetryDelay(absl::ResourceExhaustedError(absl::StrCat(
                              kMaxWaitingCompilations, " CompileOperator calls wait already.")),
                          kRetryDelay);
  }
  workers_.PostPatient([this, desc = std::move(desc), deadline, cancelled = std::move(cancelled),
                        done = std::move(done)] {
    if (*cancelled) {
      done(absl::CancelledError("The caller cancelled the call or is gone."));
    } else {
      done(cache_.Get(desc, deadline));
    }
    --compilations_;
  });
  return absl::OkStatus();
}

void Executor::Refuse(const RequestOrigin& origin, const OperatorDesc* desc,
                      const absl::Status& why) {
  if (desc == nullptr) {
    statistics_.AddRefusal(why);
  } else {
    statistics_.AddEnd({.desc = *desc, .status = why});
  }
  const absl::Duration held = absl::Now() - origin.arrived;
  statistics_.AddRefusalTime(origin.rpc, held);
  LogLine line(LogLevel::kInfo, "refuse");
  origin.AddTo(line);
  line.Add("execution_id", origin.execution_id).Add("held", held);
  if (desc != nullptr) line.Add("operator", ToString(*desc));
  line.Add(why);
}

}  // namespace opmill
