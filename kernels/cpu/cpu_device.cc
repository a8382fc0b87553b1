#include "kernels/cpu/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stop_token>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/base/steady_time.h"
#include "kernels/cpu/cpu_operators.h"
#include "kernels/cpu/host_buffers.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/operating_system.h"
#include "kernels/cpu/thread_pool.h"

namespace opmill {
namespace {

class CompiledCpuOperator : public CompiledOperator {
 public:
  CompiledCpuOperator(const OperatorDesc& desc, CpuOperator cpu_operator, uint64_t scratch_bytes)
      : CompiledOperator(desc, {.kept_bytes = sizeof(CompiledCpuOperator) + 512,
                                .scratch_bytes = scratch_bytes,
                                .run_bytes = cpu_operator.program->cost_bytes()}),
        operator_(std::move(cpu_operator)) {}
  const CpuOperator& cpu_operator() const { return operator_; }

 private:
  const CpuOperator operator_;
};

struct Counters {
  std::atomic<uint64_t> runs = 0;
  std::atomic<uint64_t> tasks = 0;
  std::atomic<int64_t> longest_nanoseconds = 0;  // of a task
  std::atomic<bool> closing = false;

  void CountTask(absl::Duration duration) {
    const int64_t nanoseconds = absl::ToInt64Nanoseconds(duration);
    int64_t longest = longest_nanoseconds;
    while (nanoseconds > longest &&
           !longest_nanoseconds.compare_exchange_weak(longest, nanoseconds)) {
    }
  }
};

// Whether this thread computes a run within Run. If its callback calls Run again, that run goes to
// the pool; otherwise callbacks would nest as deep as a caller's queue is long.
thread_local bool runs_inline = false;

// Computes the phases of one run, then calls its callback.
class RunJob : public PoolJob {
 public:
  RunJob(Counters& counters, std::shared_ptr<const CompiledCpuOperator> compiled, Bindings bindings,
         std::stop_token abandoned, Device::RunCallback done)
      : counters_(counters),
        compiled_(std::move(compiled)),
        bindings_(std::move(bindings)),
        abandoned_(std::move(abandoned)),
        done_(std::move(done)) {}

  // Finds the buffers and allocates scratch. Called before the pool gets the job.
  absl::Status Prepare() {
    absl::StatusOr<RunBuffers> buffers =
        FindBuffers(compiled_->cpu_operator(), compiled_->cpu_operator().input_bytes, bindings_);
    if (!buffers.ok()) return buffers.status();
    buffers_ = *buffers;
    const uint64_t scratch_bytes = program().scratch_bytes();
    if (scratch_bytes == 0) return absl::OkStatus();
    scratch_.reset(new (std::nothrow)
                       Block[static_cast<size_t>(scratch_bytes / sizeof(Block) + 1)]);
    if (scratch_ == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The host has no ", scratch_bytes, " bytes for scratch."));
    }
    buffers_.scratch = scratch_[0].bytes;
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
    const bool stopped = !refusal_.ok() || stopped_;
    if (stopped || phase_ == program().phases().size()) {
      End();
      return 0;
    }
    return program().phases()[phase_++];
  }

  void RunTask(uint64_t task) override {
    if (!refusal_.ok() || stopped_) return;
    if (!begun_.exchange(true)) begun_at_ = SteadyNow();
    if (counters_.closing && phase_ == 1 && !working_) {
      closed_ = true;
      stopped_ = true;
    } else if (abandoned_.stop_requested()) {
      stopped_ = true;
    }
    if (stopped_) return;
    working_ = true;
    ++counters_.tasks;
    if (runs_inline) {  // far less than a task of the pool, and measuring takes a tenth of it
      program().Run(phase_ - 1, task, buffers_);
      return;
    }
    const absl::Duration before = ThreadTime();
    program().Run(phase_ - 1, task, buffers_);
    counters_.CountTask(ThreadTime() - before);
  }

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };

  const CpuProgram& program() const { return *compiled_->cpu_operator().program; }

  void End() {
    const Device::RunCallback done = std::move(done_);
    absl::StatusOr<RunStatistics> result = Result();
    scratch_ = nullptr;
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
  std::shared_ptr<const CompiledCpuOperator> compiled_;
  Bindings bindings_;
  const std::stop_token abandoned_;
  Device::RunCallback done_;
  const absl::Time queued_at_ = SteadyNow();
  RunBuffers buffers_;
  std::unique_ptr<Block[]> scratch_;
  absl::Status refusal_;
  size_t phase_ = 0;  // the pool does not call concurrently
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
      Counters& counters, std::shared_ptr<const CompiledCpuOperator> compiled, Bindings bindings) {
    const CpuOperator& cpu_operator = compiled->cpu_operator();
    const uint64_t memory_bytes = IncrementalBytesOf(cpu_operator);
    if (memory_bytes == 0) {
      return absl::FailedPreconditionError("The operator needs its whole input.");
    }
    ASSIGN_OR_RETURN(RunBuffers buffers, FindBuffers(cpu_operator, {memory_bytes}, bindings));
    std::byte* const memory = bindings.inputs[0]->bytes().data();
    buffers.scratch = memory + RoundUp(cpu_operator.program->step_bytes(), kAlignment);
    return absl::WrapUnique(new CpuIncrementalRun(counters, std::move(compiled),
                                                  std::move(bindings), memory,
                                                  cpu_operator.program->Steps(buffers)));
  }

  // 0 if it has no incremental runs, or if they take more memory than they save.
  static uint64_t IncrementalBytesOf(const CpuOperator& cpu_operator) {
    const CpuProgram& program = *cpu_operator.program;
    if (program.step_bytes() == 0) return 0;
    const uint64_t bytes = RoundUp(program.step_bytes(), kAlignment) + program.state_bytes();
    const uint64_t most = std::min(cpu_operator.input_bytes[0] / 2, kMostBytes);
    return bytes <= std::max(most, kFewBytes) ? bytes : 0;
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
  static constexpr uint64_t kAlignment = 64;
  static constexpr uint64_t kFewBytes = uint64_t{64} << 10;
  static constexpr uint64_t kMostBytes = uint64_t{2} << 20;

  CpuIncrementalRun(Counters& counters, std::shared_ptr<const CompiledCpuOperator> compiled,
                    Bindings bindings, std::byte* memory, std::unique_ptr<CpuSteps> steps)
      : counters_(counters),
        compiled_(std::move(compiled)),
        bindings_(std::move(bindings)),
        memory_(memory),
        steps_(std::move(steps)) {}

  Counters& counters_;
  const std::shared_ptr<const CompiledCpuOperator> compiled_;
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
        buffers_(std::make_shared<HostBuffers>(options.max_buffer_bytes, options.max_idle_bytes)),
        threads_(options.threads != 0 ? options.threads : UsableProcessors()),
        pool_(threads_) {
    info_.name = ProcessorName();
    info_.kind = DeviceKind::kCpu;
    info_.driver =
        absl::StrCat(InstructionSet(), ", ", threads_, threads_ == 1 ? " thread" : " threads");
    info_.max_scratch_bytes = options.max_scratch_bytes;
  }

  // Started runs are completed; waiting runs end with Unavailable.
  ~CpuDevice() override { counters_.closing = true; }

  const DeviceInfo& info() const override { return info_; }

  absl::StatusOr<std::shared_ptr<const CompiledOperator>> Compile(
      const OperatorDesc& desc) override {
    CpuOperator cpu_operator = MakeCpuOperator(desc);
    const CpuProgram& program = *cpu_operator.program;
    const uint64_t tasks = *absl::c_max_element(program.phases());
    const uint64_t scratch_bytes =
        program.scratch_bytes() + program.task_bytes() * std::min<uint64_t>(threads_, tasks);
    if (scratch_bytes > options_.max_scratch_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "The operator takes ", scratch_bytes, " bytes of scratch, more than max_scratch_bytes (",
          options_.max_scratch_bytes, ")."));
    }
    return std::make_shared<const CompiledCpuOperator>(desc, std::move(cpu_operator),
                                                       scratch_bytes);
  }

  absl::StatusOr<std::shared_ptr<HostBuffer>> Allocate(uint64_t size_bytes, BufferUse) override {
    return buffers_->Allocate(size_bytes);
  }

  void Run(std::shared_ptr<const CompiledOperator> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    auto ours = std::static_pointer_cast<const CompiledCpuOperator>(std::move(compiled));
    const uint64_t run_bytes = ours->cost().run_bytes;
    const auto job = std::make_shared<RunJob>(counters_, std::move(ours), std::move(bindings),
                                              std::move(abandoned), std::move(done));
    if (absl::Status status = job->Prepare(); !status.ok()) {
      job->Refuse(std::move(status));
    } else if (run_bytes <= options_.max_inline_bytes && !runs_inline) {
      runs_inline = true;
      ThreadPool::RunHere(*job);
      runs_inline = false;
      return;
    }
    pool_.Post(job);
  }

  uint64_t IncrementalBytes(const OperatorDesc& desc) const override {
    if (desc.inputs.size() != 1 || SpannedBytes(desc.inputs[0]) < options_.min_incremental_bytes) {
      return 0;
    }
    return CpuIncrementalRun::IncrementalBytesOf(MakeCpuOperator(desc));
  }

  absl::StatusOr<std::unique_ptr<IncrementalRun>> BeginIncremental(
      const std::shared_ptr<const CompiledOperator>& compiled, const Bindings& bindings) override {
    return CpuIncrementalRun::Begin(
        counters_, std::static_pointer_cast<const CompiledCpuOperator>(compiled), bindings);
  }

  DeviceCounters counters() const override {
    DeviceCounters counters;
    counters.runs = counters_.runs;
    counters.submissions = counters_.runs;
    counters.dispatches = counters_.tasks;
    counters.longest_submission = absl::Nanoseconds(counters_.longest_nanoseconds.load());
    counters.buffer_bytes_in_use = buffers_->used_bytes();
    counters.buffer_bytes_pooled = buffers_->idle_bytes();
    return counters;
  }

  void ReleaseIdleMemory() override { buffers_->ReleaseIdle(); }

 private:
  const CpuDeviceOptions options_;
  const std::shared_ptr<HostBuffers> buffers_;
  const uint32_t threads_;
  DeviceInfo info_;
  Counters counters_;
  ThreadPool pool_;  // declared last: its threads use the members above
};

}  // namespace

std::unique_ptr<Device> CreateCpuDevice(const CpuDeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace opmill
