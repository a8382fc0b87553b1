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
namespace {

// Takes about a millisecond to copy.
constexpr size_t kStepBytes = size_t{4} << 20;
// Of one execution: others want to compile.
constexpr size_t kMostCopyingThreads = 4;

// What the device reads, writes and keeps for it. A broadcast input is few bytes and much work.
uint64_t WorkBytes(const Execution& execution, const ProgramCost& cost) {
  uint64_t bytes = 0;
  for (const TensorDesc& input : execution.desc().inputs) {
    bytes += std::max(SpannedBytes(input), ElementCount(input) * ElementBytes(input.data_type));
  }
  for (const uint64_t output : execution.output_bytes()) bytes += output;
  return bytes + cost.scratch_bytes;
}

}  // namespace

Executor::Executor(Device& device, OperatorCache& cache, Statistics& statistics,
                   const Limits& limits)
    : device_(device),
      cache_(cache),
      statistics_(statistics),
      admission_(limits),
      memory_(limits.max_bytes_in_flight),
      callers_(TokenBucket(limits.caller.rate), statistics),
      executions_(limits.max_executions),
      queued_(limits.max_queued),
      streams_(std::make_shared<SharedLimit>(limits.max_streams)),
      workers_(std::max(2u, std::thread::hardware_concurrency())) {}

Executor::~Executor() {
  const auto all_runs_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return runs_ == 0; };
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&all_runs_ended));
}

absl::StatusOr<std::shared_ptr<Execution>> Executor::Begin(ExecutionRequest& request) {
  std::optional<CachedOperator> found = cache_.Find(request.desc);
  const BufferSizes sizes =
      BufferSizes::Of(request.desc.inputs, OutputsOf(request.desc),
                      request.input_is_shared ? 0 : IncrementalBytes(request.desc, found));
  const std::shared_ptr<CallerAccount>& caller = AccountOf(request.origin);
  Admission::Load now = load();
  now.max_queued = queued_.LimitFor(caller->queued, 1, callers_.several());
  RETURN_IF_ERROR(admission_.CheckExecution(sizes, request.deadline - SteadyNow(), now));
  // Before there is room for it, so that a caller beyond its rate takes no room from others.
  const absl::Duration wait = caller->CountBegin(SteadyNow());
  if (wait > absl::ZeroDuration()) return admission_.TooFast(wait);
  absl::StatusOr<TensorBuffers> buffers = TakeRoom(sizes, caller);
  if (!buffers.ok()) {
    caller->UncountBegin();
    return buffers.status();
  }
  std::vector<TensorDesc> outputs = OutputsOf(request.desc);
  auto execution = std::make_shared<Execution>(std::move(request), std::move(outputs));
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    execution->buffers_ = *std::move(buffers);
    const absl::MutexLock lock(&mutex_);
    queues_.Enter(execution, SteadyNow());
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
  if (sizes.is_incremental) {
    PrepareIncremental(execution, std::move(found));
  } else {
    Prepare(execution, std::move(found));
  }
  return execution;
}

absl::Status Executor::BeginStream(RequestOrigin& origin) {
  const std::shared_ptr<CallerAccount> caller = AccountOf(origin);
  const uint64_t up_to = streams_->LimitFor(caller->streams, 1, callers_.several());
  if (!streams_->TryTake(caller->streams, 1, up_to)) return admission_.NoPlaceForStream(up_to);
  origin.stream_place = std::shared_ptr<void>(
      caller.get(), [caller, streams = streams_](void*) { streams->Return(caller->streams, 1); });
  return absl::OkStatus();
}

const std::shared_ptr<CallerAccount>& Executor::AccountOf(RequestOrigin& origin) {
  if (origin.account == nullptr) {
    origin.account = callers_.Find(origin.caller, origin.peer, SteadyNow());
  }
  return origin.account;
}

Admission::Load Executor::load() const {
  return {.draining = draining_,
          .short_of_memory = short_of_memory_,
          .queued = queued_.used(),
          .max_queued = {},
          .compilations = compilations_};
}

// An operator that is not cached is planned for this alone: one that is refused does not displace
// others from the cache.
uint64_t Executor::IncrementalBytes(const OperatorDesc& desc,
                                    const std::optional<CachedOperator>& found) const {
  if (found.has_value()) return found->compiled->cost().incremental_bytes;
  if (desc.inputs.size() != 1 ||
      SpannedBytes(desc.inputs[0]) < device_.info().min_incremental_bytes) {
    return 0;
  }
  const auto compiled = device_.Compile(desc);
  return compiled.ok() ? (*compiled)->cost().incremental_bytes : 0;
}

absl::StatusOr<TensorBuffers> Executor::TakeRoom(const BufferSizes& sizes,
                                                 const std::shared_ptr<CallerAccount>& caller) {
  for (;;) {
    absl::StatusOr<TensorBuffers> buffers;
    {
      const absl::MutexLock lock(&caller->begin_mutex);
      RETURN_IF_ERROR(
          admission_.CheckCaller(sizes, caller->executions.amount, caller->bytes.amount));
      buffers = Reserve(sizes, caller);
    }
    if (buffers.ok()) {
      const absl::Status allocated = buffers->AllocateInputs(device_, sizes);
      if (allocated.ok()) return buffers;
      executions_.Return(caller->executions, 1);
      buffers = Admission::OutOfMemory(allocated, open_executions());
    }
    if (!absl::IsResourceExhausted(buffers.status())) return buffers;
    if (!EndStalled(SteadyNow(), *caller)) {
      RememberRefused(caller);
      return buffers;
    }
  }
}

// Takes the place and the bytes of an execution.
absl::StatusOr<TensorBuffers> Executor::Reserve(const BufferSizes& sizes,
                                                const std::shared_ptr<CallerAccount>& caller) {
  const bool has_others = callers_.several();
  ASSIGN_OR_RETURN(
      TensorBuffers buffers,
      TensorBuffers::Reserve(memory_, sizes, std::shared_ptr<Holding>(caller, &caller->bytes),
                             has_others));
  const uint64_t up_to = executions_.LimitFor(caller->executions, 1, has_others);
  if (!executions_.TryTake(caller->executions, 1, up_to)) {
    return admission_.NoPlaceForExecution(up_to);
  }
  return buffers;
}

bool Executor::ExceedsShare(const CallerAccount& owner, const CallerAccount& asking) const {
  return executions_.ExceedsShare(owner.executions, asking.executions) ||
         memory_.shared().ExceedsShare(owner.bytes, asking.bytes);
}

// Ends some executions that hold memory and receive no input, or too slowly: those of `caller`
// itself that receive none, and those of callers with more than their shares. Returns false if
// there are none.
bool Executor::EndStalled(absl::Time now, const CallerAccount& caller) {
  using Stall = ExecutionQueues::Stall;
  const auto may_end = [&](const Execution& execution, Stall why) {
    const CallerAccount& owner = *execution.request().origin.account;
    if (why == Stall::kSlowInput && !owner.pace.IsSlow(now)) return false;
    return &owner == &caller ? why == Stall::kNoInput : ExceedsShare(owner, caller);
  };
  ExecutionQueues::Stalled stalled;
  {
    const absl::MutexLock lock(&mutex_);
    stalled = queues_.FindStalled(now, may_end);
  }
  const absl::Status displaced =
      Admission::Displaced(stalled.why == Stall::kNoInput ? Admission::Displacement::kNoInput
                                                          : Admission::Displacement::kSlowInput);
  for (const auto& execution : stalled.executions) End(execution, displaced);
  return !stalled.executions.empty();
}

void Executor::RememberRefused(const std::shared_ptr<CallerAccount>& caller) {
  const absl::MutexLock lock(&mutex_);
  if (refused_ == nullptr || caller->bytes.amount < refused_->bytes.amount) refused_ = caller;
}

std::shared_ptr<const CallerAccount> Executor::TakeRefused() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(refused_, nullptr);
}

void Executor::Prepare(const std::shared_ptr<Execution>& execution,
                       std::optional<CachedOperator> found) {
  if (found.has_value()) {
    Prepared(execution, *std::move(found));
    return;
  }
  workers_.Post([this, execution] {
    if (!execution->status().ok()) return;
    Prepared(execution, cache_.Get(execution->desc(), execution->request().deadline));
  });
}

// To compile takes less time here than to hand it to a worker.
void Executor::PrepareIncremental(const std::shared_ptr<Execution>& execution,
                                  std::optional<CachedOperator> found) {
  Prepared(execution, found.has_value()
                          ? *std::move(found)
                          : cache_.Get(execution->desc(), execution->request().deadline));
  if (!execution->status().ok() || !AllocateOutputs(execution)) return;
  std::shared_ptr<const CompiledProgram> compiled;
  Bindings bindings;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    compiled = std::move(execution->compiled_);
    execution->work_bytes_ =
        std::max(WorkBytes(*execution, compiled->cost()), compiled->cost().run_bytes);
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
  std::shared_ptr<BudgetedBuffer> input;
  std::shared_ptr<IncrementalRun> run;
  uint64_t received = 0;
  absl::Status fits;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    const Upload& upload = execution->progress_.upload();
    fits = upload.Check(chunk, field);
    if (fits.ok()) {  // so it is uploading
      run = execution->incremental_run_;
      if (run == nullptr) input = execution->buffers_.input(chunk.tensor_index);
      received = upload.received(chunk.tensor_index);
    }
  }
  if (!fits.ok()) {
    End(execution, fits);
    return;
  }
  if (run == nullptr) {
    chunk.data.CopyTo(input->buffer->bytes().data() + received);
  } else {
    chunk.data.ForEachPart([&run](absl::Span<const std::byte> part) { run->Add(part); });
  }
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
    const absl::MutexLock queue_lock(&mutex_);
    execution->request().origin.account->pace.Add(chunk.data.size(), SteadyNow());
    if (then == Received::kMore) {
      queues_.AwaitInput(*execution, SteadyNow());
    } else {
      queues_.AwaitOperator(*execution, SteadyNow());
    }
  }
  if (then != Received::kEnqueue) return;
  if (is_incremental) {
    FinishIncremental(execution);
  } else {
    Enqueue(execution);
  }
}

// Threads copy the pieces in any order. The execution receives its inputs when all are copied.
struct Executor::InputCopy {
  struct Piece {
    size_t input;
    uint64_t offset;
    size_t size;
  };
  std::shared_ptr<Execution> execution;
  ReadInput read;
  std::vector<std::shared_ptr<BudgetedBuffer>> buffers;
  std::vector<Piece> pieces;
  std::atomic<size_t> next = 0;
  std::atomic<size_t> left = 0;
};

void Executor::ReceiveFrom(const std::shared_ptr<Execution>& execution, ReadInput read) {
  const auto copy = std::make_shared<InputCopy>();
  copy->execution = execution;
  copy->read = std::move(read);
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.ended()) return;
    for (size_t i = 0; i < execution->desc().inputs.size(); ++i) {
      copy->buffers.push_back(execution->buffers_.input(i));
      const uint64_t bytes = SpannedBytes(execution->desc().inputs[i]);
      for (uint64_t offset = 0; offset < bytes; offset += kStepBytes) {
        copy->pieces.push_back({i, offset, std::min<size_t>(kStepBytes, bytes - offset)});
      }
    }
    const absl::MutexLock queue_lock(&mutex_);
    queues_.AwaitOperator(*execution, SteadyNow());  // it does not wait for its caller
  }
  copy->left = copy->pieces.size();
  const size_t threads = std::min<size_t>(copy->pieces.size(), kMostCopyingThreads);
  for (size_t i = 0; i < threads; ++i) {
    PostSteps([this, copy] { return CopyPiece(*copy); });
  }
}

bool Executor::CopyPiece(InputCopy& copy) {
  const size_t index = copy.next++;
  if (index >= copy.pieces.size() || !copy.execution->status().ok()) return false;
  const auto& [input, offset, size] = copy.pieces[index];
  const absl::Span<std::byte> to = copy.buffers[input]->buffer->bytes();
  const absl::Status copied =
      copy.read(input, offset, to.subspan(static_cast<size_t>(offset), size));
  if (!copied.ok()) {
    End(copy.execution, copied);
    return false;
  }
  if (--copy.left > 0) return true;
  copy.buffers.clear();
  const std::vector<TensorDesc>& inputs = copy.execution->desc().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Arrived(copy.execution, {.tensor_index = static_cast<uint32_t>(i),
                             .data = Payload(nullptr, 0, 0, SpannedBytes(inputs[i]))});
  }
  return false;
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
    if (execution->progress_.stage() != Stage::kUploading) return;
    missing = execution->progress_.upload().Missing(what);
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
    const absl::Time now = SteadyNow();
    if (!execution->progress_.Enqueue(now)) return;
    const ProgramCost& cost = execution->compiled_->cost();
    const uint64_t memory_bytes = WorkBytes(*execution, cost);
    execution->work_bytes_ = std::max(memory_bytes, cost.run_bytes);
    const absl::MutexLock lock(&mutex_);
    queues_.AwaitDevice(*execution, memory_bytes, now, cost.run_bytes);
  }
  SubmitReady();
}

void Executor::FinishIncremental(const std::shared_ptr<Execution>& execution) {
  std::shared_ptr<IncrementalRun> run;
  {
    const absl::MutexLock execution_lock(&execution->mutex_);
    const absl::Time now = SteadyNow();
    if (!execution->progress_.Enqueue(now) || !execution->progress_.Submit(now)) return;
    run.swap(execution->incremental_run_);
    statistics_.Leave(Stage::kQueued);
    statistics_.Enter(Stage::kRunning);
    LeaveQueue(*execution);
    const absl::MutexLock lock(&mutex_);
    queues_.Remove(*execution);
  }
  Computed(execution, run->Finish());
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
  std::shared_ptr<const CompiledProgram> compiled;
  {
    const absl::MutexLock lock(&execution->mutex_);
    if (execution->progress_.Submit(SteadyNow())) {
      compiled = std::move(execution->compiled_);
      bindings = execution->buffers_.Bind();
      statistics_.Leave(Stage::kQueued);
      statistics_.Enter(Stage::kRunning);
      LeaveQueue(*execution);
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
                RunEnded(execution, result);
                const absl::MutexLock lock(&mutex_);
                --runs_;
              });
}

void Executor::LeaveQueue(const Execution& execution) {
  queued_.Return(execution.request().origin.account->queued, 1);
}

void Executor::RunEnded(const std::shared_ptr<Execution>& execution,
                        const absl::StatusOr<RunStatistics>& result) {
  {
    const absl::MutexLock lock(&mutex_);
    queues_.RunEnded(*execution);
  }
  // Its caller first: the device may compute small executions within SubmitReady.
  Computed(execution, result);
  SubmitReady();
}

void Executor::Computed(const std::shared_ptr<Execution>& execution,
                        const absl::StatusOr<RunStatistics>& result) {
  if (!result.ok()) {
    // What was compiled for a lost device is of no use to the next.
    if (absl::IsUnavailable(result.status())) workers_.Post([this] { cache_.Invalidate(); });
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
    const absl::MutexLock lock(&mutex_);
    queues_.Remove(*execution);
  }
  timer_.Remove(deadline);
  if (stage == Stage::kRunning) execution->abandon_run_.request_stop();
  buffers = {};
  run = nullptr;
  ReportEnd(*execution, status, statistics_);
  if (stage != Stage::kStreaming) execution->request().on_ready(execution);
  executions_.Return(execution->request().origin.account->executions, 1);
}

absl::Status Executor::Compile(OperatorDesc desc, absl::Time deadline,
                               std::shared_ptr<const std::atomic<bool>> cancelled,
                               std::function<void(absl::StatusOr<CachedOperator>)> done) {
  Admission::Load now = load();
  now.compilations = compilations_.fetch_add(1);
  absl::Status admitted = admission_.CheckCompilation(
      BufferSizes::Of(desc.inputs, OutputsOf(desc), IncrementalBytes(desc, std::nullopt)), now);
  if (!admitted.ok()) {
    --compilations_;
    return admitted;
  }
  workers_.PostLowPriority([this, desc = std::move(desc), deadline,
                            cancelled = std::move(cancelled), done = std::move(done)] {
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
  ReportRefusal(origin, desc, why, statistics_);
}

}  // namespace opmill
