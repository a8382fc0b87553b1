#include "server/execution/executor.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "server/execution/end_report.h"
#include "server/execution/trace_report.h"

namespace opmill {
namespace {

// So that a few compilations that take long leave threads for others.
constexpr uint32_t kLeastWorkers = 4;

// It has memory that the store counts.
void LeaveOutResident(const ExecutionRequest& request, BufferSizes& sizes) {
  for (size_t i = 0; i < request.sources.size(); ++i) {
    if (request.sources[i].resident != nullptr) sizes.inputs[i] = 0;
  }
  for (const KeptOutput& kept : request.kept) {
    if (kept.writing->buffer() != nullptr) sizes.outputs[kept.output] = 0;
  }
}

}  // namespace

Executor::Executor(Device& device, OperatorCache& cache, Statistics& statistics,
                   const Limits& limits, Traces* traces)
    : device_(device),
      statistics_(statistics),
      traces_(traces),
      admission_(limits),
      room_(device, admission_, waiting_, statistics, limits),
      queued_(limits.max_queued),
      compile_limit_(timer_, limits.max_model_compile_time),
      compilations_(device, cache, workers_, admission_, compile_limit_),
      batches_(compilations_, compile_limit_, workers_, timer_,
               [this](const auto& members, const auto& batch) { SubmitBatch(members, batch); }),
      workers_(std::max(kLeastWorkers, std::thread::hardware_concurrency())) {}

absl::StatusOr<std::shared_ptr<Execution>> Executor::Begin(ExecutionRequest& request) {
  const absl::Time now = SteadyNow();
  if (request.origin.asked_at == absl::InfinitePast()) request.origin.asked_at = now;
  const bool is_sent =
      (request.sources.empty() || request.sources[0].is_sent()) && request.kept.empty();
  Compilations::Found found = compilations_.Find(request.op, !is_sent, request.program);
  BufferSizes sizes = BufferSizes::Of(*request.program, is_sent ? found.incremental_bytes() : 0);
  LeaveOutResident(request, sizes);
  const std::shared_ptr<CallerAccount>& caller = room_.AccountOf(request.origin);
  Admission::Load load_now = load();
  load_now.max_queued = queued_.LimitFor(caller->queued, 1, callers().several());
  RETURN_IF_ERROR(admission_.CheckExecution(sizes, request.deadline - now, load_now));
  // Before there is room for it, so that a caller beyond its rate takes no room from others.
  const absl::Duration wait = caller->CountBegin(now);
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
    execution->BindResident();
    const ExecutionRequest& begun = execution->request();
    execution->batch_group_ = batches_.GroupOf(begun, sizes.total() / begun.rows());
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
  const ExecutionRequest& request = execution->request();
  if (found.is_compiled()) {
    Prepared(execution, compilations_.Get(*request.program, request.deadline, std::move(found)));
    return;
  }
  auto compile = [this, execution] {
    if (!execution->status().ok()) return;
    const ExecutionRequest& wants = execution->request();
    compilations_.Get(*wants.program, LimitedProgram::Of(wants.model.get()), execution->abandoned(),
                      [this, execution](const auto& compiled) { Prepared(execution, compiled); });
  };
  if (request.model != nullptr && request.model->graph != nullptr) {
    workers_.PostLong(std::move(compile), execution->abandoned());
  } else {
    workers_.Post(std::move(compile));
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
    complete = execution->progress_.Prepare(found->was_cached, found->duration,
                                            found->was_cached ? absl::InfinitePast() : SteadyNow());
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

void Executor::PostSteps(std::function<bool()> step, bool are_long) {
  auto next = [this, step = std::move(step), are_long] {
    if (step()) PostSteps(step, are_long);
  };
  if (are_long) {
    workers_.PostLong(std::move(next));
  } else {
    workers_.Post(std::move(next));
  }
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
    const TensorStore::Writing* const writing = execution->request().WritingOf(i);
    if (writing != nullptr && writing->buffer() != nullptr) continue;
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
  const bool is_batched = execution->batch_group() != nullptr;
  if (!is_batched && !AllocateOutputs(execution)) return;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    if (!execution->progress_.Enqueue(SteadyNow())) return;
    const ProgramCost& cost = execution->compiled_->cost();
    const uint64_t memory_bytes = execution->MemoryBytes(cost);
    execution->work_bytes_ = std::max(memory_bytes, cost.run_bytes);
    if (!is_batched) waiting_.AwaitDevice(*execution, memory_bytes, cost.run_bytes);
  }
  if (is_batched) {
    batches_.Add(execution);
  } else {
    SubmitReady();
  }
}

// A batch is closed. Its members wait for the device, each as one of its caller.
void Executor::SubmitBatch(const std::vector<std::shared_ptr<Execution>>& members,
                           const std::shared_ptr<Batch>& batch) {
  std::vector<WaitingExecutions::Work> works;
  for (const std::shared_ptr<Execution>& member : members) {
    const absl::MutexLock lock(&member->mutex_);
    if (member->progress_.ended()) continue;
    member->batch_ = batch;
    const ProgramCost& cost = member->compiled_->cost();
    works.push_back({member, member->MemoryBytes(cost), cost.run_bytes});
  }
  waiting_.AwaitDevice(works);
  SubmitReady();
}

// Its run, or that of its batch, has ended.
void Executor::LeaveBatch(Execution& execution) {
  std::shared_ptr<Batch> batch;  // the last one lets the next batch go, without the lock
  const absl::MutexLock lock(&execution.mutex_);
  batch.swap(execution.batch_);
}

void Executor::FinishIncremental(const std::shared_ptr<Execution>& execution) {
  std::shared_ptr<IncrementalRun> run;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    if (!execution->progress_.Enqueue(SteadyNow()) || !StartRunning(*execution)) return;
    run.swap(execution->incremental_run_);
    waiting_.Remove(*execution);
  }
  const RunStatistics result = run->Finish();
  CountRun(*execution, 1, result);
  Computed(execution, result);
}

void Executor::SubmitReady() {
  waiting_.SubmitReady([this](const std::shared_ptr<Execution>& execution) { Submit(execution); });
}

void Executor::Submit(const std::shared_ptr<Execution>& execution) {
  std::shared_ptr<Batch> batch;
  {
    const absl::MutexLock lock(&execution->mutex_);
    batch = execution->batch_;
  }
  if (batch != nullptr && batch->joined != nullptr) {
    SubmitJoined(*batch);
    return;
  }
  const bool is_allocated = execution->batch_group() == nullptr || AllocateOutputs(execution);
  Bindings bindings;
  std::shared_ptr<const CompiledProgram> compiled;
  if (is_allocated) {
    const absl::MutexLock lock(&execution->mutex_);
    if (StartRunning(*execution)) {
      compiled = std::move(execution->compiled_);
      bindings = execution->buffers_.Bind();
      bindings.profile = execution->request().profile;
    }
  }
  Start(execution, std::move(compiled), std::move(bindings));
}

// `compiled` is null if the execution has ended.
void Executor::Start(const std::shared_ptr<Execution>& execution,
                     std::shared_ptr<const CompiledProgram> compiled, Bindings bindings) {
  if (compiled == nullptr) {
    waiting_.RunEnded(*execution);
    LeaveBatch(*execution);
    waiting_.CallbackEnded();
    return;
  }
  device_.Run(std::move(compiled), std::move(bindings), execution->abandon_.get_token(),
              [this, execution](const absl::StatusOr<RunStatistics>& result) {
                RunEnded(execution, result);
                waiting_.CallbackEnded();
              });
}

// For the first member that the device gets; it runs the others with it.
void Executor::SubmitJoined(Batch& batch) {
  if (batch.has_started.exchange(true)) {
    waiting_.CallbackEnded();
    return;
  }
  const std::vector<std::shared_ptr<Execution>> members = std::move(batch.members);
  waiting_.TakeAlong(members);
  std::vector<JoinedMember> running;
  for (const std::shared_ptr<Execution>& member : members) {
    bool is_running = false;
    {
      const absl::MutexLock lock(&member->mutex_);
      is_running = StartRunning(*member);
      if (is_running) running.push_back({member, member->buffers_.Bind().inputs});
    }
    if (!is_running) waiting_.RunEnded(*member);
  }
  absl::StatusOr<std::shared_ptr<JoinedRun>> run;
  if (running.size() > 1) run = JoinedRun::Create(device_, *batch.joined, batch.rows, running);
  if (!run.ok()) {
    RunEach(running);
    waiting_.CallbackEnded();
    return;
  }
  device_.Run(batch.joined, (*run)->bindings(), (*run)->abandoned(),
              [this, run = *run](const absl::StatusOr<RunStatistics>& result) {
                JoinedRunEnded(*run, result);
                waiting_.CallbackEnded();
              });
}

void Executor::JoinedRunEnded(JoinedRun& run, const absl::StatusOr<RunStatistics>& result) {
  std::vector<JoinedMember>& members = run.members();
  // The device may have had no memory for all of them together.
  if (absl::IsResourceExhausted(result.status())) {
    RunEach(members);
    return;
  }
  absl::StatusOr<RunStatistics> shared = result;
  if (shared.ok()) shared->batch_size = static_cast<uint32_t>(members.size());
  uint64_t rows = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    Execution& execution = *members[i].execution;
    rows += execution.request().rows();
    waiting_.RunEnded(execution);
    members[i].inputs.clear();
    const absl::MutexLock lock(&execution.mutex_);
    for (size_t o = 0; shared.ok() && !execution.progress_.ended() && o < execution.outputs_.size();
         ++o) {
      execution.buffers_.SetOutput(o, run.OutputOf(i, o));
    }
  }
  CountRun(*members[0].execution, rows, shared);
  for (const JoinedMember& member : members) Computed(member.execution, shared);
  for (const JoinedMember& member : members) LeaveBatch(*member.execution);
  SubmitReady();
}

// Members that have begun to run, without the others.
void Executor::RunEach(std::vector<JoinedMember>& members) {
  for (JoinedMember& member : members) {
    waiting_.RunBegins();
    RunAlone(member);
  }
}

void Executor::RunAlone(JoinedMember& member) {
  const std::shared_ptr<Execution> execution = member.execution;
  std::shared_ptr<const CompiledProgram> compiled;
  Bindings bindings = {.inputs = std::move(member.inputs)};
  if (AllocateOutputs(execution)) {
    const absl::MutexLock lock(&execution->mutex_);
    compiled = std::move(execution->compiled_);
    if (compiled != nullptr) bindings.outputs = execution->buffers_.Bind().outputs;
  }
  Start(execution, std::move(compiled), std::move(bindings));
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
  CountRun(*execution, execution->request().rows(), result);
  // Its caller first: the device may compute small executions within the calls below.
  Computed(execution, result);
  LeaveBatch(*execution);
  SubmitReady();
}

void Executor::CountRun(const Execution& execution, uint64_t rows,
                        const absl::StatusOr<RunStatistics>& result) {
  const auto& model = execution.request().model;
  if (result.ok() && model != nullptr) {
    model->model->statistics->AddExecution(rows, result->executed);
  }
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
  if (execution->request().kept.empty()) {
    Ready(execution, *result);
    return;
  }
  workers_.Post([this, execution, result = *result] {
    if (const absl::Status kept = Keep(*execution); !kept.ok()) {
      End(execution, kept);
    } else {
      Ready(execution, result);
    }
  });
}

// Not if the execution has ended.
absl::Status Executor::Keep(Execution& execution) {
  for (const KeptOutput& kept : execution.request().kept) {
    std::shared_ptr<BudgetedBuffer> output;
    {
      const absl::MutexLock lock(&execution.mutex_);
      if (execution.progress_.ended()) return absl::OkStatus();
      output = execution.buffers_.output(kept.output);
    }
    absl::Span<const std::byte> rows;
    if (kept.writing->buffer() == nullptr) {
      const uint64_t bytes = SpannedBytes(execution.outputs()[kept.output]);
      rows = output->buffer->bytes().first(static_cast<size_t>(bytes));
    }
    const absl::Status finished = kept.writing->Finish(rows);
    if (!finished.ok()) return finished;
  }
  return absl::OkStatus();
}

void Executor::Ready(const std::shared_ptr<Execution>& execution, const RunStatistics& result) {
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (!execution->progress_.Compute(result, SteadyNow())) return;
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
  if (stage == Stage::kQueued && execution->batch_group() != nullptr) Batches::Remove(*execution);
  if (stage != Stage::kRunning) LeaveBatch(*execution);
  timer_.Remove(deadline);
  if (stage != Stage::kStreaming) execution->abandon_.request_stop();
  buffers = {};
  run = nullptr;
  ReportEnd(*execution, status, statistics_, traces_);
  if (stage != Stage::kStreaming) execution->request().on_ready(execution);
  room_.ReturnPlace(*execution->request().origin.account);
}

void Executor::Refuse(const RequestOrigin& origin, const OperatorDesc* desc,
                      const absl::Status& why) {
  ReportRefusal(origin, desc, why, statistics_, traces_);
}

void Executor::Answered(const RequestOrigin& origin) {
  if (traces_ != nullptr) TraceCall(origin, absl::OkStatus(), *traces_);
}

}  // namespace opmill
