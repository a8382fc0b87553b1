#include "kernels/cpu/device/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/base/steady_time.h"
#include "kernels/cpu/device/cpu_plan.h"
#include "kernels/cpu/device/host_buffers.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/operating_system.h"
#include "kernels/cpu/thread_pool.h"

namespace opmill {
namespace {

// In an incremental run, the memory that is bound as the input holds what is collected for a step,
// and from this offset on the states.
uint64_t StatesOffset(const CpuProgram& work) { return RoundUp(work.step_bytes(), 64); }

// 0 if it has no incremental runs, or if they take more memory than they save.
uint64_t IncrementalBytes(const Program& program, const CpuPlan& plan, uint64_t min_input_bytes) {
  constexpr uint64_t kFewBytes = uint64_t{64} << 10;
  constexpr uint64_t kMostBytes = uint64_t{2} << 20;
  const CpuProgram& work = *plan.nodes[0].work;
  const OperatorDesc* const desc = OperatorOf(program);
  if (desc == nullptr || plan.nodes.size() != 1 || desc->inputs.size() != 1 ||
      work.step_bytes() == 0 || SpannedBytes(desc->inputs[0]) < min_input_bytes) {
    return 0;
  }
  const uint64_t bytes = StatesOffset(work) + work.state_bytes();
  const uint64_t most = std::min(plan.input_bytes[0] / 2, kMostBytes);
  return bytes <= std::max(most, kFewBytes) ? bytes : 0;
}

class CompiledCpuProgram : public CompiledProgram {
 public:
  CompiledCpuProgram(const Program& program, CpuPlan plan, uint64_t scratch_bytes,
                     uint64_t min_incremental_bytes)
      : CompiledProgram(program, CostOf(program, plan, scratch_bytes, min_incremental_bytes)),
        plan_(std::move(plan)),
        has_single_tasks_(std::all_of(plan_.phases.begin(), plan_.phases.end(),
                                      [](const CpuPhase& phase) { return phase.tasks == 1; })) {}
  const CpuPlan& plan() const { return plan_; }
  // Whether other threads have nothing to do.
  bool has_single_tasks() const { return has_single_tasks_; }
  ProgramReport Report() const override { return ReportOf(program(), plan_); }

 private:
  static ProgramCost CostOf(const Program& program, const CpuPlan& plan, uint64_t scratch_bytes,
                            uint64_t min_incremental_bytes) {
    ProgramCost cost = {.kept_bytes = sizeof(CompiledCpuProgram) + 512 * plan.nodes.size(),
                        .shared = ConstantsOf(plan),
                        .scratch_bytes = scratch_bytes,
                        .run_bytes = CostBytes(plan),
                        .incremental_bytes = IncrementalBytes(program, plan, min_incremental_bytes),
                        .rounding = RoundingOf(plan)};
    for (const SharedBytes& each : cost.shared) cost.kept_bytes += each.bytes;
    return cost;
  }

  const CpuPlan plan_;
  const bool has_single_tasks_;
};

struct Counters {
  std::atomic<uint64_t> runs = 0;
  std::atomic<uint64_t> tasks = 0;
  std::atomic<int64_t> longest_nanoseconds = 0;  // of a task
  std::atomic<bool> closing = false;

  void CountTask(int64_t nanoseconds) {
    int64_t longest = longest_nanoseconds;
    while (nanoseconds > longest &&
           !longest_nanoseconds.compare_exchange_weak(longest, nanoseconds)) {
    }
  }
};

// Measures the tasks of a thread, without the time of others that interrupt it. Asking for the time
// of the thread takes as long as a small task, so it is read once a millisecond, and after a task
// that seems to be the longest: one that was interrupted counts up to a millisecond too much.
class TaskTimer {
 public:
  void Begin() {
    begin_ = Now();
    if (begin_ - read_at_ < kReadTime) return;
    read_at_ = begin_;
    thread_time_ = absl::ToInt64Nanoseconds(ThreadTime());
  }
  void End(Counters& counters) const {
    const int64_t taken = Now() - begin_;
    if (taken <= counters.longest_nanoseconds) return;
    counters.CountTask(std::min(taken, absl::ToInt64Nanoseconds(ThreadTime()) - thread_time_));
  }

 private:
  static constexpr int64_t kReadTime = 1000000;

  static int64_t Now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  int64_t begin_ = 0;
  int64_t read_at_ = -kReadTime;
  int64_t thread_time_ = 0;
};

thread_local TaskTimer task_timer;

// Whether this thread computes a run within Run. If its callback calls Run again, that run goes to
// the pool; otherwise callbacks would nest as deep as a caller's queue is long.
thread_local bool runs_inline = false;

// Computes the phases of one run, then calls its callback.
class RunJob : public PoolJob {
 public:
  RunJob(Counters& counters, HostBuffers& arenas,
         std::shared_ptr<const CompiledCpuProgram> compiled, Bindings bindings,
         std::stop_token abandoned, Device::RunCallback done)
      : counters_(counters),
        arenas_(arenas),
        compiled_(std::move(compiled)),
        bindings_(std::move(bindings)),
        abandoned_(std::move(abandoned)),
        done_(std::move(done)) {}

  // Checks the buffers and allocates the arena. Called before the pool, or this thread alone, gets
  // the job.
  absl::Status Prepare(uint32_t threads) {
    RETURN_IF_ERROR(CheckBindings(bindings_, plan().input_bytes, plan().output_bytes));
    if (bindings_.profile != nullptr) {
      *bindings_.profile = {
          .report = compiled_->Report(),
          .times = std::vector<absl::Duration>(plan().nodes.size(), absl::ZeroDuration()),
          .threads = threads};
    }
    const uint64_t bytes = plan().arena_bytes;
    if (bytes == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(arena_, arenas_.Allocate(bytes, Residency::kDevice));
    return absl::OkStatus();
  }

  // Ends the run with this error. The pool still gets one (empty) task, so that one of its threads
  // makes the callback.
  void Refuse(absl::Status status) { refusal_ = std::move(status); }

  uint64_t NextPhase() override {
    if (!refusal_.ok() && phase_ == 0) {
      ++phase_;
      return 1;
    }
    if (bindings_.profile != nullptr) Measure();
    const bool stopped = !refusal_.ok() || stopped_;
    if (phase_ > 0 && !stopped) counters_.tasks += plan().phases[phase_ - 1].tasks;
    if (stopped || phase_ == plan().phases.size()) {
      End();
      return 0;
    }
    const CpuPhase& next = plan().phases[phase_++];
    if (next.phase == 0) {
      node_ = &plan().nodes[next.node];
      buffers_ = BuffersOf(plan(), *node_, bindings_,
                           arena_ == nullptr ? nullptr : arena_->bytes().data());
    }
    return next.tasks;
  }

  void RunTask(uint64_t task) override {
    if (!refusal_.ok() || stopped_) return;
    if (!begun_ && !begun_.exchange(true)) begun_at_ = SteadyNow();
    if (counters_.closing && !working_) {
      closed_ = true;
      stopped_ = true;
    } else if (abandoned_.stop_requested()) {
      stopped_ = true;
    }
    if (stopped_) return;
    if (!working_) working_ = true;  // threads that only read it do not wait for each other
    const size_t phase = plan().phases[phase_ - 1].phase;
    if (runs_inline) {  // far less than a task of the pool, and measuring takes a tenth of it
      node_->work->Run(phase, task, buffers_);
      return;
    }
    task_timer.Begin();
    node_->work->Run(phase, task, buffers_);
    task_timer.End(counters_);
  }

 private:
  const CpuPlan& plan() const { return compiled_->plan(); }

  // The phase that has ended.
  void Measure() {
    const absl::Time now = SteadyNow();
    if (phase_ > 0 && refusal_.ok()) {
      const absl::Time begin = phase_ == 1 ? begun_at_ : phase_begun_at_;  // it may have waited
      bindings_.profile->times[plan().phases[phase_ - 1].node] += now - begin;
    }
    phase_begun_at_ = now;
  }

  void End() {
    const Device::RunCallback done = std::move(done_);
    absl::StatusOr<RunStatistics> result = Result();
    arena_ = nullptr;
    done(std::move(result));
    bindings_ = {};
    compiled_ = nullptr;
  }

  absl::StatusOr<RunStatistics> Result() {
    if (!refusal_.ok()) return refusal_;
    if (closed_) return absl::UnavailableError("The device is closing.");
    if (stopped_) return absl::CancelledError("The run was abandoned.");
    ++counters_.runs;
    RunStatistics statistics;
    statistics.queued = begun_at_ - queued_at_;
    statistics.executed = SteadyNow() - begun_at_;
    statistics.batch_size = 1;
    return statistics;
  }

  Counters& counters_;
  HostBuffers& arenas_;
  std::shared_ptr<const CompiledCpuProgram> compiled_;
  Bindings bindings_;
  const std::stop_token abandoned_;
  Device::RunCallback done_;
  const absl::Time queued_at_ = SteadyNow();
  std::shared_ptr<Buffer> arena_;
  absl::Status refusal_;
  // Of the phase that is computed. NextPhase sets them; the pool does not call it concurrently.
  size_t phase_ = 0;  // the number of the next one
  const CpuNode* node_ = nullptr;
  RunBuffers buffers_;
  absl::Time phase_begun_at_ = queued_at_;
  absl::Time begun_at_ = queued_at_;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> working_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> closed_ = false;
};

// Collects what arrives until it is enough for a step, in the memory that is bound as the input.
class CpuIncrementalRun : public IncrementalRun {
 public:
  static absl::StatusOr<std::unique_ptr<IncrementalRun>> Begin(
      Counters& counters, std::shared_ptr<const CompiledCpuProgram> compiled, Bindings bindings) {
    const uint64_t memory_bytes = compiled->cost().incremental_bytes;
    if (memory_bytes == 0) {
      return absl::FailedPreconditionError("The program needs its whole input.");
    }
    RETURN_IF_ERROR(CheckBindings(bindings, {memory_bytes}, compiled->plan().output_bytes));
    const CpuNode& node = compiled->plan().nodes[0];
    std::byte* const memory = bindings.inputs[0].bytes().data();
    const RunBuffers buffers =
        BuffersOf(compiled->plan(), node, bindings, memory + StatesOffset(*node.work));
    return absl::WrapUnique(new CpuIncrementalRun(
        counters, std::move(compiled), std::move(bindings), memory, node.work->Steps(buffers)));
  }

  void Add(absl::Span<const std::byte> bytes) override {
    const absl::Time begin = SteadyNow();
    while (!bytes.empty()) {
      const uint64_t wanted = steps_->bytes();
      if (wanted == 0) break;
      const size_t some = std::min<size_t>(wanted - collected_, bytes.size());
      std::memcpy(memory_ + collected_, bytes.data(), some);
      bytes.remove_prefix(some);
      collected_ += some;
      if (collected_ < wanted) break;
      steps_->Take(memory_);
      collected_ = 0;
    }
    executed_ += SteadyNow() - begin;
  }

  RunStatistics Finish() override {
    ++counters_.runs;
    ++counters_.tasks;
    return {.executed = executed_, .batch_size = 1};
  }

 private:
  CpuIncrementalRun(Counters& counters, std::shared_ptr<const CompiledCpuProgram> compiled,
                    Bindings bindings, std::byte* memory, std::unique_ptr<CpuSteps> steps)
      : counters_(counters),
        compiled_(std::move(compiled)),
        bindings_(std::move(bindings)),
        memory_(memory),
        steps_(std::move(steps)) {}

  Counters& counters_;
  const std::shared_ptr<const CompiledCpuProgram> compiled_;
  const Bindings bindings_;
  std::byte* const memory_;
  const std::unique_ptr<CpuSteps> steps_;
  uint64_t collected_ = 0;  // bytes for the next step
  absl::Duration executed_;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options)
      : options_(options),
        buffers_(std::make_shared<HostBuffers>(options.max_buffer_bytes,
                                               options.max_idle_bytes - IdleOfArenas(options))),
        arenas_(std::make_shared<HostBuffers>(UINT64_MAX, IdleOfArenas(options))),
        threads_(options.threads != 0 ? options.threads : UsableProcessors()),
        pool_(threads_) {
    info_.name = ProcessorName();
    info_.kind = DeviceKind::kCpu;
    info_.driver =
        absl::StrCat(InstructionSet(), ", ", threads_, threads_ == 1 ? " thread" : " threads");
    info_.max_scratch_bytes = options.max_scratch_bytes;
    info_.min_incremental_bytes = options.min_incremental_bytes;
  }

  // Started runs are completed; waiting runs end with Unavailable.
  ~CpuDevice() override { counters_.closing = true; }

  const DeviceInfo& info() const override { return info_; }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    CpuPlan plan = MakeCpuPlan(program, kept_, abandoned);
    RETURN_IF_ERROR(CheckAbandoned(abandoned));
    const uint64_t scratch_bytes = ScratchBytes(plan, threads_);
    if (scratch_bytes > options_.max_scratch_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "The ", plan.nodes.size() == 1 ? "operator" : "program", " takes ", scratch_bytes,
          " bytes of scratch, more than max_scratch_bytes (", options_.max_scratch_bytes, ")."));
    }
    return std::make_shared<const CompiledCpuProgram>(program, std::move(plan), scratch_bytes,
                                                      options_.min_incremental_bytes);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                   Residency residency) override {
    return buffers_->Allocate(size_bytes, residency);
  }

  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    auto ours = std::static_pointer_cast<const CompiledCpuProgram>(std::move(compiled));
    const uint64_t most = options_.max_inline_bytes * (ours->has_single_tasks() ? 4 : 1);
    const bool is_short = ours->cost().run_bytes <= most && !runs_inline;
    const auto job =
        std::make_shared<RunJob>(counters_, *arenas_, std::move(ours), std::move(bindings),
                                 std::move(abandoned), std::move(done));
    if (absl::Status status = job->Prepare(is_short ? 1u : threads_); !status.ok()) {
      job->Refuse(std::move(status));
    } else if (is_short) {
      runs_inline = true;
      ThreadPool::RunHere(*job);
      runs_inline = false;
      return;
    }
    pool_.Post(job);
  }

  absl::StatusOr<std::unique_ptr<IncrementalRun>> BeginIncremental(
      const std::shared_ptr<const CompiledProgram>& compiled, const Bindings& bindings) override {
    return CpuIncrementalRun::Begin(
        counters_, std::static_pointer_cast<const CompiledCpuProgram>(compiled), bindings);
  }

  DeviceCounters counters() const override {
    DeviceCounters counters;
    counters.runs = counters_.runs;
    counters.submissions = counters_.runs;
    counters.dispatches = counters_.tasks;
    counters.longest_submission = absl::Nanoseconds(counters_.longest_nanoseconds.load());
    counters.buffer_bytes_in_use = buffers_->used_bytes();
    counters.buffer_bytes_pooled = buffers_->idle_bytes() + arenas_->idle_bytes();
    return counters;
  }

  void ReleaseIdleMemory() override {
    buffers_->ReleaseIdle();
    arenas_->ReleaseIdle();
  }

 private:
  // Its part of max_idle_bytes.
  static uint64_t IdleOfArenas(const CpuDeviceOptions& options) {
    return options.max_idle_bytes / 8;
  }

  const CpuDeviceOptions options_;
  const std::shared_ptr<HostBuffers> buffers_;
  const std::shared_ptr<HostBuffers> arenas_;
  const uint32_t threads_;
  DeviceInfo info_;
  KeptConstants kept_;
  Counters counters_;
  ThreadPool pool_;  // declared last: its threads use the members above
};

}  // namespace

std::unique_ptr<Device> CreateCpuDevice(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace opmill
