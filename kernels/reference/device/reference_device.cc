#include "kernels/reference/device/reference_device.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/base/steady_time.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/operators/program_steps.h"
#include "kernels/program/placement.h"

namespace opmill {
namespace {

// Shared with the buffers, which may outlive the device.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}

  absl::Status Take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      if (bytes > limit_ - used) {
        return absl::ResourceExhaustedError(absl::StrCat("A buffer of ", bytes,
                                                         " bytes does not fit: ", used, " of ",
                                                         limit_, " bytes are in use."));
      }
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return absl::OkStatus();
  }
  void GiveBack(uint64_t bytes) { used_ -= bytes; }
  uint64_t used() const { return used_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_ = 0;
};

class ReferenceBuffer : public Buffer {
 public:
  ReferenceBuffer(std::unique_ptr<std::byte[]> memory, uint64_t size_bytes, Residency residency,
                  std::shared_ptr<ByteBudget> budget)
      : Buffer(size_bytes, residency), memory_(std::move(memory)), budget_(std::move(budget)) {}
  ~ReferenceBuffer() override { budget_->GiveBack(size_bytes()); }
  absl::Span<std::byte> bytes() override {
    return absl::MakeSpan(memory_.get(), static_cast<size_t>(size_bytes()));
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::shared_ptr<ByteBudget> budget_;
};

uint64_t SumOf(const Program& program, ValueKind kind) {
  uint64_t bytes = 0;
  for (const uint64_t size : RequiredBytes(program, kind)) bytes += size;
  return bytes;
}

class ReferenceProgram : public CompiledProgram {
 public:
  explicit ReferenceProgram(const Program& program)
      : CompiledProgram(program, {.kept_bytes = sizeof(ReferenceProgram) * program.nodes.size() +
                                                SumOf(program, ValueKind::kConstant),
                                  .scratch_bytes = SumOf(program, ValueKind::kIntermediate)}) {}

  // Intermediates do not share memory.
  ProgramReport Report() const override {
    const std::vector<uint64_t> no_scratch(program().nodes.size(), 0);
    ProgramReport report = {.steps = StepsOf(program()),
                            .live_bytes = Place(program(), no_scratch).live_bytes};
    for (const uint64_t bytes : RequiredBytes(program(), ValueKind::kIntermediate)) {
      report.arena_bytes += RoundUp(bytes, kPlacementAlignment);
    }
    return report;
  }
};

class ReferenceDevice : public Device {
 public:
  explicit ReferenceDevice(const ReferenceDeviceOptions& options)
      : max_queued_(options.max_queued),
        budget_(std::make_shared<ByteBudget>(options.max_buffer_bytes)) {
    info_.name = "Reference";
    info_.kind = DeviceKind::kReference;
    info_.driver = "host";
    info_.max_scratch_bytes = options.max_scratch_bytes;
    uint32_t threads = options.threads;
    if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
    for (uint32_t i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  }

  // Runs that have started are finished; waiting runs end with Unavailable.
  ~ReferenceDevice() override {
    {
      const absl::MutexLock lock(&mutex_);
      closing_ = true;
    }
    for (std::thread& worker : workers_) worker.join();
  }

  const DeviceInfo& info() const override { return info_; }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& /*abandoned*/) override {
    const uint64_t bytes = SumOf(program, ValueKind::kIntermediate);
    if (bytes > info_.max_scratch_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "The program takes ", bytes, " bytes for intermediates, more than max_scratch_bytes (",
          info_.max_scratch_bytes, ")."));
    }
    return std::make_shared<const ReferenceProgram>(program);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                   Residency residency) override {
    RETURN_IF_ERROR(budget_->Take(size_bytes));
    std::unique_ptr<std::byte[]> memory(
        new (std::nothrow) std::byte[std::max<size_t>(static_cast<size_t>(size_bytes), 1)]);
    if (memory == nullptr) {
      budget_->GiveBack(size_bytes);
      return absl::ResourceExhaustedError(
          absl::StrCat("The host has no ", size_bytes, " bytes for a buffer."));
    }
    return std::make_shared<ReferenceBuffer>(std::move(memory), size_bytes, residency, budget_);
  }

  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    QueuedRun run{std::move(compiled), std::move(bindings), std::move(abandoned),
                  std::move(done),     SteadyNow(),         absl::OkStatus()};
    const absl::MutexLock lock(&mutex_);
    if (waiting_ >= max_queued_) {
      // A worker makes the callback as for any run, but references are released now.
      run.refusal = absl::ResourceExhaustedError(
          absl::StrCat("The device's queue of ", max_queued_, " runs is full."));
      run.compiled = nullptr;
      run.bindings = {};
    } else {
      ++waiting_;
    }
    queue_.push_back(std::move(run));
  }

  DeviceCounters counters() const override {
    DeviceCounters counters;
    counters.runs = runs_;
    counters.submissions = runs_;
    counters.buffer_bytes_in_use = budget_->used();
    return counters;
  }

 private:
  struct QueuedRun {
    std::shared_ptr<const CompiledProgram> compiled;
    Bindings bindings;
    std::stop_token abandoned;
    RunCallback done;
    absl::Time queued_at;
    absl::Status refusal;
  };

  void Work() {
    while (std::optional<QueuedRun> run = Next()) {
      if (!run->refusal.ok()) {
        run->done(run->refusal);
      } else {
        run->done(Execute(*run));
      }
    }
  }

  // Blocks until there is a run; nullopt when the device closes and none is waiting.
  std::optional<QueuedRun> Next() ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto changed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closing_ || !queue_.empty();
    };
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&changed));
    if (queue_.empty()) return std::nullopt;
    QueuedRun run = std::move(queue_.front());
    queue_.pop_front();
    if (run.refusal.ok()) --waiting_;
    if (closing_ && run.refusal.ok()) {
      run.refusal = absl::UnavailableError("The device is closing.");
    }
    return run;
  }

  absl::StatusOr<RunStatistics> Execute(const QueuedRun& run) {
    const absl::Time started = SteadyNow();
    const Program& program = run.compiled->program();
    RETURN_IF_ERROR(CheckBindings(run.bindings, RequiredBytes(program, ValueKind::kInput),
                                  RequiredBytes(program, ValueKind::kOutput)));
    ASSIGN_OR_RETURN(const std::vector<Range> ranges, RangesOf(program, run.bindings));
    RunProfile* const profile = run.bindings.profile.get();
    if (profile != nullptr) *profile = {.report = run.compiled->Report(), .threads = 1};
    for (const ProgramNode& node : program.nodes) {
      const absl::Time step_started = SteadyNow();
      std::vector<absl::Span<const std::byte>> inputs;
      for (const ProgramView& view : node.inputs) {
        const ProgramValue& read = program.values[view.value];
        const absl::Span<const std::byte> bytes =
            read.kind == ValueKind::kConstant
                ? absl::MakeSpan(read.constant->data(), RequiredBytes(read.tensor))
                : ranges[view.value].bytes();
        inputs.push_back(bytes.subspan(view.first_element * ElementBytes(read.tensor.data_type)));
      }
      std::vector<absl::Span<std::byte>> outputs;
      for (const uint32_t value : node.outputs) outputs.push_back(ranges[value].bytes());
      RETURN_IF_ERROR(ReferenceRun(node.desc, inputs, outputs, run.abandoned));
      if (profile != nullptr) profile->times.push_back(SteadyNow() - step_started);
    }
    ++runs_;
    RunStatistics statistics;
    statistics.queued = started - run.queued_at;
    statistics.executed = SteadyNow() - started;
    statistics.batch_size = 1;
    return statistics;
  }

  // The range of each value except constants: the bound ones, and new ones for intermediates.
  absl::StatusOr<std::vector<Range>> RangesOf(const Program& program, const Bindings& bindings) {
    std::vector<Range> ranges(program.values.size());
    auto input = bindings.inputs.begin();
    auto output = bindings.outputs.begin();
    for (size_t i = 0; i < ranges.size(); ++i) {
      const ProgramValue& value = program.values[i];
      if (value.kind == ValueKind::kInput) ranges[i] = *input++;
      if (value.kind == ValueKind::kOutput) ranges[i] = *output++;
      if (value.kind != ValueKind::kIntermediate) continue;
      ASSIGN_OR_RETURN(ranges[i], Allocate(RequiredBytes(value.tensor), Residency::kDevice));
    }
    return ranges;
  }

  const size_t max_queued_;
  const std::shared_ptr<ByteBudget> budget_;
  DeviceInfo info_;
  std::atomic<uint64_t> runs_ = 0;

  absl::Mutex mutex_;
  std::deque<QueuedRun> queue_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // queued runs that were not refused
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;  // declared last: they use the members above
};

}  // namespace

std::unique_ptr<Device> CreateReferenceDevice(const ReferenceDeviceOptions& options) {
  return std::make_unique<ReferenceDevice>(options);
}

}  // namespace opmill
