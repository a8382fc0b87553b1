#include "server/execution/executor.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "server/execution/end_report.h"

namespace opmill {
Executor::Executor(Device& device, OperatorCache& cache, Statistics& statistics,
                   const Limits& limits)
    : device_(device),
      statistics_(statistics),
      admission_(limits),
      room_(device, admission_, waiting_, statistics, limits),
      queued_(limits.max_queued),
      compilations_(device, cache, workers_, admission_),
      workers_(std::max(2u, std::thread::hardware_concurrency())) {}

absl::StatusOr<std::shared_ptr<Execution>> Executor::Begin(ExecutionRequest& request) {
  const bool is_read = !request.sources.empty() && request.sources[0].read != nullptr;
  Compilations::Found found = compilations_.Find(request.op, is_read, request.program);
  const BufferSizes sizes =
      BufferSizes::Of(*request.program, is_read ? 0 : found.incremental_bytes());
  const std::shared_ptr<CallerAccount>& caller = room_.AccountOf(request.origin);
  Admission::Load now = load();
  now.max_queued = queued_.LimitFor(caller->queued, 1, callers().several());
  RETURN_IF_ERROR(admission_.CheckExecution(sizes, request.deadline - SteadyNow(), now));
  // Before there is room for it, so that a caller beyond its rate takes no room from others.
  const absl::Duration wait = caller->CountBegin(SteadyNow());
  if (wait > absl::ZeroDuration()) return admission_.TooFast(wait);
  absl::StatusOr<TensorBuffers> buffers =
      room_.Take(sizes, caller,
                 [this](const auto& execution, const absl::Status& why) { End(execution, why); });
  if (!buffers.ok()) {
    caller->UncountBegin();
    return buffers.status();
  }
  auto execution = std::make_shared<Execution>(std::move(request));
  {
    const absl::MutexLock lock(&execution->mutex_);
    execution->buffers_ = *std::move(buffers);
    waiting_.Enter(execution);
  }
  statistics_.Enter(Stage::kUploading);
  EndAtDeadline(execution);
  Prepare(execution, std::move(found));
  if (sizes.is_incremental) BeginIncremental(execution);
  ReadInputs(execution);
  return execution;
}

void Executor::EndAtDeadline(const std::shared_ptr<Execution>& execution) {
  if (execution->request().deadline == absl::InfiniteFuture()) return;
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

Admission::Load Executor::load() const {
  return {.draining = draining_,
          .short_of_memory = short_of_memory_,
          .queued = queued_.used(),
          .max_queued = {}};
}

void Executor::Prepare(const std::shared_ptr<Execution>& execution, Compilations::Found found) {
  const auto get = [this](const Execution& of, Compilations::Found from) {
    return compilations_.Get(*of.request().program, of.request().deadline, std::move(from));
  };
  if (found.is_compiled()) {
    Prepared(execution, get(*execution, std::move(found)));
  } else {
    workers_.Post([this, execution, get] {
      if (execution->status().ok()) Prepared(execution, get(*execution, {}));
    });
  }
}

// Before any input comes: the device computes with it.
void Executor::BeginIncremental(const std::shared_ptr<Execution>& execution) {
  if (!execution->status().ok() || !AllocateOutputs(execution)) return;
  std::shared_ptr<const CompiledProgram> compiled;
  Bindings bindings;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    compiled = std::move(execution->compiled_);
    execution->work_bytes_ =
        std::max(execution->MemoryBytes(compiled->cost()), compiled->cost().run_bytes);
    bindings = execution->buffers_.Bind();
  }
  absl::StatusOr<std::unique_ptr<IncrementalRun>> run =
      device_.BeginIncremental(compiled, bindings);
  if (!run.ok()) {
    End(execution, run.status());
    return;
  }
  const absl::MutexLock lock(&execution->mutex_);
  if (!execution->progress_.ended()) execution->incremental_run_ = *std::move(run);
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
    execution->description_ = std::move(found->text);
    complete = execution->progress_.Prepare(found->was_cached, found->duration);
  }
  if (complete) Enqueue(execution);
}

void Executor::Receive(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk,
                       absl::string_view field) {
  Execution::ChunkPlace place;
  absl::Status fits;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    fits = execution->progress_.upload().Check(chunk, field);
    if (fits.ok()) place = execution->PlaceOf(chunk);
  }
  if (!fits.ok()) {
    End(execution, fits);
    return;
  }
  place.Take(chunk.data);
  Arrived(execution, chunk);
}

void Executor::Arrived(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk) {
  using Received = ExecutionProgress::Received;
  Received then = Received::kMore;
  bool is_incremental = false;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    is_incremental = execution->incremental_run_ != nullptr;
    then = execution->progress_.Receive(chunk, SteadyNow());
    if (then != Received::kMore) {
      statistics_.Leave(Stage::kUploading);
      statistics_.Enter(Stage::kQueued);
      queued_.Take(execution->request().origin.account->queued, 1);
    }
    waiting_.Received(*execution, chunk.data.size(), execution->progress_.upload().awaits_chunks());
  }
  if (then != Received::kEnqueue) return;
  if (is_incremental) {
    FinishIncremental(execution);
  } else {
    Enqueue(execution);
  }
}

// An input arrives when all of its parts are copied.
void Executor::ReadInputs(const std::shared_ptr<Execution>& execution) {
  const std::vector<InputSource>& sources = execution->request().sources;
  if (sources.empty()) return;
  const auto copy = std::make_shared<InputCopy>(sources, execution->inputs());
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    if (!execution->progress_.upload().awaits_chunks()) waiting_.AwaitServer(*execution);
  }
  for (size_t i = 0; i < copy->threads(); ++i) {
    PostSteps([this, execution, copy] { return CopyPart(execution, *copy); });
  }
}

bool Executor::CopyPart(const std::shared_ptr<Execution>& execution, InputCopy& copy) {
  const std::optional<InputCopy::Part> part = copy.Next();
  if (!part.has_value()) return false;
  std::shared_ptr<BudgetedBuffer> input;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return false;
    input = execution->buffers_.input(part->input);
  }
  const absl::Status copied = execution->request().sources[part->input].read(
      part->offset, input->buffer->bytes().subspan(static_cast<size_t>(part->offset), part->size));
  if (!copied.ok()) {
    End(execution, copied);
    return false;
  }
  input = nullptr;  // the run's alone, from then on
  if (copy.IsLast(*part)) {
    const uint64_t bytes = SpannedBytes(execution->inputs()[part->input]);
    Arrived(execution, {.tensor_index = static_cast<uint32_t>(part->input),
                        .data = Payload(nullptr, 0, 0, bytes)});
  }
  return true;
}

void Executor::PostSteps(std::function<bool()> step) {
  workers_.Post([this, step = std::move(step)] {
    if (step()) PostSteps(step);
  });
}

void Executor::EndInputs(const std::shared_ptr<Execution>& execution, absl::string_view what) {
  absl::Status missing;
  {
    const absl::MutexLock lock(&execution->mutex_);
    const Upload& upload = execution->progress_.upload();
    if (execution->progress_.stage() != Stage::kUploading || !upload.awaits_chunks()) return;
    missing = upload.Missing(what);
  }
  End(execution, missing);
}

// Returns false if the execution has ended.
bool Executor::AllocateOutputs(const std::shared_ptr<Execution>& execution) {
  for (size_t i = 0; i < execution->outputs_.size(); ++i) {
    absl::StatusOr<std::shared_ptr<Buffer>> allocated =
        device_.Allocate(RequiredBytes(execution->outputs_[i]), Residency::kReadback);
    if (!allocated.ok()) {
      End(execution, Admission::OutOfMemory(allocated.status(), open_executions() - 1));
      return false;
    }
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return false;
    execution->buffers_.SetOutput(i, *std::move(allocated));
  }
  return true;
}

// Called once, from Prepared or from the last Receive: from the later one.
void Executor::Enqueue(const std::shared_ptr<Execution>& execution) {
  if (!AllocateOutputs(execution)) return;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    if (!execution->progress_.Enqueue(SteadyNow())) return;
    const ProgramCost& cost = execution->compiled_->cost();
    const uint64_t memory_bytes = execution->MemoryBytes(cost);
    execution->work_bytes_ = std::max(memory_bytes, cost.run_bytes);
    waiting_.AwaitDevice(*execution, memory_bytes, cost.run_bytes);
  }
  SubmitReady();
}

void Executor::FinishIncremental(const std::shared_ptr<Execution>& execution) {
  std::shared_ptr<IncrementalRun> run;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    if (!execution->progress_.Enqueue(SteadyNow()) || !StartRunning(*execution)) return;
    run.swap(execution->incremental_run_);
    waiting_.Remove(*execution);
  }
  Computed(execution, run->Finish());
}

void Executor::SubmitReady() {
  waiting_.SubmitReady([this](const std::shared_ptr<Execution>& execution) { Submit(execution); });
}

void Executor::Submit(const std::shared_ptr<Execution>& execution) {
  Bindings bindings;
  std::shared_ptr<const CompiledProgram> compiled;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (StartRunning(*execution)) {
      compiled = std::move(execution->compiled_);
      bindings = execution->buffers_.Bind();
    }
  }
  if (compiled == nullptr) {
    waiting_.RunEnded(*execution);
    waiting_.CallbackEnded();
    return;
  }
  device_.Run(std::move(compiled), std::move(bindings), execution->abandon_run_.get_token(),
              [this, execution](const absl::StatusOr<RunStatistics>& result) {
                RunEnded(execution, result);
                waiting_.CallbackEnded();
              });
}

bool Executor::StartRunning(Execution& execution) {
  if (!execution.progress_.Submit(SteadyNow())) return false;
  statistics_.Leave(Stage::kQueued);
  statistics_.Enter(Stage::kRunning);
  LeaveQueue(execution);
  return true;
}

void Executor::LeaveQueue(const Execution& execution) {
  queued_.Return(execution.request().origin.account->queued, 1);
}

void Executor::RunEnded(const std::shared_ptr<Execution>& execution,
                        const absl::StatusOr<RunStatistics>& result) {
  waiting_.RunEnded(*execution);
  // Its caller first: the device may compute small executions within SubmitReady.
  Computed(execution, result);
  SubmitReady();
}

void Executor::Computed(const std::shared_ptr<Execution>& execution,
                        const absl::StatusOr<RunStatistics>& result) {
  if (!result.ok()) {
    if (absl::IsUnavailable(result.status())) compilations_.ForgetAll();
    const bool is_short = absl::IsResourceExhausted(result.status());
    End(execution, is_short ? Admission::OutOfMemory(result.status(), open_executions() - 1)
                            : result.status());
    return;
  }
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (!execution->progress_.Compute(*result, SteadyNow())) return;
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
  TensorBuffers buffers;
  std::shared_ptr<const CompiledProgram> compiled;
  std::shared_ptr<IncrementalRun> run;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    const std::optional<Stage> was = execution->progress_.End(status, SteadyNow());
    if (!was.has_value()) return;
    stage = *was;
    deadline = execution->deadline_;
    std::swap(buffers, execution->buffers_);
    compiled.swap(execution->compiled_);
    run.swap(execution->incremental_run_);
    statistics_.Leave(stage);
    if (stage == Stage::kQueued) LeaveQueue(*execution);
    waiting_.Remove(*execution);
  }
  timer_.Remove(deadline);
  if (stage == Stage::kRunning) execution->abandon_run_.request_stop();
  buffers = {};
  run = nullptr;
  ReportEnd(*execution, status, statistics_);
  if (stage != Stage::kStreaming) execution->request().on_ready(execution);
  room_.ReturnPlace(*execution->request().origin.account);
}

void Executor::Refuse(const RequestOrigin& origin, const OperatorDesc* desc,
                      const absl::Status& why) {
  ReportRefusal(origin, desc, why, statistics_);
}

}  // namespace opmill
