#include "kernels/engine/paired_device.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

class PairedProgram : public CompiledProgram {
 public:
  // `on_first` is null for a small program, and for one that was compiled during a loss.
  PairedProgram(const Program& program, std::shared_ptr<const CompiledProgram> on_first,
                std::shared_ptr<const CompiledProgram> on_standby, bool is_small)
      : CompiledProgram(program, CostOf(on_first.get(), *on_standby, is_small)),
        on_standby_(std::move(on_standby)),
        is_small_(is_small),
        on_first_(std::move(on_first)) {}

  std::shared_ptr<const CompiledProgram> on_first() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return on_first_;
  }
  // Compiles it unless it is compiled.
  absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompileOn(Device& first) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    if (on_first_ == nullptr) {
      ASSIGN_OR_RETURN(on_first_, first.Compile(program()));
    }
    return on_first_;
  }
  const std::shared_ptr<const CompiledProgram>& on_standby() const { return on_standby_; }
  bool is_small() const { return is_small_; }
  ProgramReport Report() const override {
    const std::shared_ptr<const CompiledProgram> first = on_first();
    return first == nullptr ? on_standby_->Report() : first->Report();
  }

 private:
  static ProgramCost CostOf(const CompiledProgram* on_first, const CompiledProgram& on_standby,
                            bool is_small) {
    ProgramCost cost = on_standby.cost();
    cost.incremental_bytes = 0;
    if (!is_small) cost.rounding = 0;  // the first device computes it, as long as there is one
    if (on_first == nullptr) return cost;
    cost.kept_bytes += on_first->cost().kept_bytes;
    cost.scratch_bytes = std::max(cost.scratch_bytes, on_first->cost().scratch_bytes);
    cost.kernels = on_first->cost().kernels;
    return cost;
  }

  const std::shared_ptr<const CompiledProgram> on_standby_;
  const bool is_small_;
  mutable absl::Mutex mutex_;
  mutable std::shared_ptr<const CompiledProgram> on_first_ ABSL_GUARDED_BY(mutex_);
};

// A device buffer belongs to one of the two devices. The other buffers are memory of the host, and
// readback buffers move to the standby when the first device is lost under a run.
class PairedBuffer : public Buffer {
 public:
  PairedBuffer(std::shared_ptr<Buffer> memory, bool is_of_first)
      : Buffer(memory->size_bytes(), memory->residency()),
        memory_(std::move(memory)),
        is_of_first_(is_of_first) {}

  absl::Span<std::byte> bytes() override { return memory_->bytes(); }
  Buffer* memory() const { return memory_.get(); }
  bool is_of_first() const { return is_of_first_; }
  bool stays_on_first() const { return is_of_first_ && residency() == Residency::kDevice; }

  // `memory` has the same size.
  void Replace(std::shared_ptr<Buffer> memory) {
    std::memcpy(memory->bytes().data(), memory_->bytes().data(), memory->bytes().size());
    lost_memory_ = std::exchange(memory_, std::move(memory));
    is_of_first_ = false;
  }

 private:
  std::shared_ptr<Buffer> memory_;
  std::shared_ptr<Buffer> lost_memory_;
  bool is_of_first_;
};

PairedBuffer& PairOf(const Range& range) { return static_cast<PairedBuffer&>(*range.buffer); }

// The same range of the memory itself, which keeps alive what the caller has bound.
Range MemoryOf(const Range& range) {
  return {std::shared_ptr<Buffer>(range.buffer, PairOf(range).memory()), range.offset_bytes,
          range.size_bytes};
}

Bindings MemoryOf(const Bindings& bindings) {
  Bindings memory = {.profile = bindings.profile};
  for (const Range& input : bindings.inputs) memory.inputs.push_back(MemoryOf(input));
  for (const Range& output : bindings.outputs) memory.outputs.push_back(MemoryOf(output));
  return memory;
}

// The name of a device buffer of the first device: "inputs[0]".
std::optional<std::string> StaysOnFirst(const Bindings& bindings) {
  const auto find = [](absl::string_view list,
                       const std::vector<Range>& ranges) -> std::optional<std::string> {
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (PairOf(ranges[i]).stays_on_first()) return absl::StrCat(list, "[", i, "]");
    }
    return std::nullopt;
  };
  const std::optional<std::string> input = find("inputs", bindings.inputs);
  return input.has_value() ? input : find("outputs", bindings.outputs);
}

void Copy(const Range& from, const Range& to) {
  if (from.size_bytes > 0) std::memcpy(to.bytes().data(), from.bytes().data(), from.size_bytes);
}

class PairedDevice : public Device {
 public:
  PairedDevice(std::unique_ptr<Device> first, std::unique_ptr<Device> standby,
               PairedDeviceOptions options)
      : options_(std::move(options)), standby_(std::move(standby)), first_(std::move(first)) {}

  const DeviceInfo& info() const override { return first_->info(); }
  const DeviceInfo* standby() const override { return &standby_->info(); }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    ASSIGN_OR_RETURN(std::shared_ptr<const CompiledProgram> on_standby,
                     standby_->Compile(program, abandoned));
    std::shared_ptr<const CompiledProgram> on_first;
    const bool is_small = on_standby->cost().run_bytes <= options_.small_bytes;
    if (!is_small && first_is_available()) {
      absl::StatusOr<std::shared_ptr<const CompiledProgram>> compiled =
          first_->Compile(program, abandoned);
      if (compiled.ok()) {
        on_first = *std::move(compiled);
      } else if (!absl::IsUnavailable(compiled.status())) {
        return compiled.status();
      }
    }
    return std::make_shared<const PairedProgram>(program, std::move(on_first),
                                                 std::move(on_standby), is_small);
  }

  void Preload(absl::Time deadline) override { first_->Preload(deadline); }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                   Residency residency) override {
    if (size_bytes > options_.small_bytes && first_is_available()) {
      absl::StatusOr<std::shared_ptr<Buffer>> memory = first_->Allocate(size_bytes, residency);
      if (memory.ok()) return std::make_shared<PairedBuffer>(*std::move(memory), true);
      if (!absl::IsUnavailable(memory.status())) return memory.status();
    }
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> memory, standby_->Allocate(size_bytes, residency));
    return std::make_shared<PairedBuffer>(std::move(memory), false);
  }

  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    auto ours = std::static_pointer_cast<const PairedProgram>(std::move(compiled));
    if (const std::optional<std::string> name = StaysOnFirst(bindings)) {
      RunOnFirst(std::move(ours), std::move(bindings), *name, std::move(abandoned),
                 std::move(done));
      return;
    }
    if (ours->is_small()) {
      small_runs_.fetch_add(1, std::memory_order_relaxed);
      RunOnStandby(*ours, bindings, std::move(abandoned), std::move(done));
      return;
    }
    Bindings on_first;
    std::shared_ptr<const CompiledProgram> program = ours->on_first();
    const absl::Status bound =
        program == nullptr || !first_is_available() ? FirstIsLost() : BindFirst(bindings, on_first);
    if (!bound.ok()) {
      (absl::IsUnavailable(bound) ? standby_runs_ : no_memory_runs_)
          .fetch_add(1, std::memory_order_relaxed);
      RunOnStandby(*ours, bindings, std::move(abandoned), std::move(done));
      return;
    }
    auto run = std::make_shared<FirstRun>(
        FirstRun{ours, std::move(bindings), on_first.outputs, abandoned, std::move(done)});
    first_->Run(std::move(program), std::move(on_first), std::move(abandoned),
                [this, run](const absl::StatusOr<RunStatistics>& result) {
                  if (absl::IsUnavailable(result.status())) {
                    RunAgain(*run);
                    return;
                  }
                  if (result.ok()) run->CopyOutputs();
                  run->done(result);
                });
  }

  DeviceCounters counters() const override {
    DeviceCounters counters = first_->counters();
    const DeviceCounters standby = standby_->counters();
    counters.runs += standby.runs;
    counters.submissions += standby.submissions;
    counters.dispatches += standby.dispatches;
    counters.buffer_bytes_in_use += standby.buffer_bytes_in_use;
    counters.buffer_bytes_pooled += standby.buffer_bytes_pooled;
    counters.small_runs = small_runs_.load(std::memory_order_relaxed);
    counters.standby_runs = standby_runs_.load(std::memory_order_relaxed);
    counters.no_memory_runs = no_memory_runs_.load(std::memory_order_relaxed);
    counters.on_standby = !first_is_available();
    return counters;
  }

  void ReleaseIdleMemory() override {
    first_->ReleaseIdleMemory();
    standby_->ReleaseIdleMemory();
  }
  void ReleaseIdleKernels() override { first_->ReleaseIdleKernels(); }

 private:
  // A run that the first device has, and what it takes to run it again.
  struct FirstRun {
    std::shared_ptr<const PairedProgram> compiled;
    Bindings bindings;
    std::vector<Range> outputs_of_first;  // those that it writes to
    std::stop_token abandoned;
    RunCallback done;
    absl::Time queued_at = SteadyNow();

    void CopyOutputs() const {
      for (size_t i = 0; i < bindings.outputs.size(); ++i) {
        if (!PairOf(bindings.outputs[i]).is_of_first()) {
          Copy(outputs_of_first[i], bindings.outputs[i]);
        }
      }
    }
  };

  bool first_is_available() const {
    return options_.first_is_available->load(std::memory_order_acquire);
  }

  static absl::Status FirstIsLost() {
    return absl::UnavailableError("The first device is, or was, lost.");
  }

  // Unavailable if the first device is lost, or was lost when large buffers of the run were
  // allocated. Another error if it has no memory for the run.
  absl::Status BindFirst(const Bindings& bindings, Bindings& on_first) {
    const auto bind = [this](const std::vector<Range>& from, Residency residency,
                             std::vector<Range>& to) -> absl::Status {
      for (const Range& range : from) {
        if (PairOf(range).is_of_first()) {
          to.push_back(MemoryOf(range));
          continue;
        }
        if (range.size_bytes > options_.small_bytes) return FirstIsLost();
        ASSIGN_OR_RETURN(const Range copy, first_->Allocate(range.size_bytes, residency));
        if (residency == Residency::kUpload) Copy(range, copy);
        to.push_back(copy);
      }
      return absl::OkStatus();
    };
    on_first.profile = bindings.profile;
    RETURN_IF_ERROR(bind(bindings.inputs, Residency::kUpload, on_first.inputs));
    return bind(bindings.outputs, Residency::kReadback, on_first.outputs);
  }

  void RunOnStandby(const PairedProgram& compiled, const Bindings& bindings,
                    std::stop_token abandoned, RunCallback done) {
    standby_->Run(compiled.on_standby(), MemoryOf(bindings), std::move(abandoned), std::move(done));
  }

  // Runs where the device buffer `name` is, or not at all.
  void RunOnFirst(std::shared_ptr<const PairedProgram> compiled, Bindings bindings,
                  absl::string_view name, std::stop_token abandoned, RunCallback done) {
    std::shared_ptr<const CompiledProgram> program;
    Bindings on_first;
    const auto prepare = [&]() -> absl::Status {
      if (!first_is_available()) return LostBufferError(name);
      ASSIGN_OR_RETURN(program, compiled->CompileOn(*first_));
      return BindFirst(bindings, on_first);
    };
    if (absl::Status prepared = prepare(); !prepared.ok()) {
      done(std::move(prepared));
      return;
    }
    auto run = std::make_shared<FirstRun>(FirstRun{std::move(compiled), std::move(bindings),
                                                   on_first.outputs, abandoned, std::move(done)});
    first_->Run(std::move(program), std::move(on_first), std::move(abandoned),
                [run](const absl::StatusOr<RunStatistics>& result) {
                  if (result.ok()) run->CopyOutputs();
                  run->done(result);
                });
  }

  // The first device was lost under the run.
  void RunAgain(FirstRun& run) {
    standby_runs_.fetch_add(1, std::memory_order_relaxed);
    for (const Range& output : run.bindings.outputs) {
      if (!PairOf(output).is_of_first()) continue;
      absl::StatusOr<std::shared_ptr<Buffer>> memory =
          standby_->Allocate(output.buffer->size_bytes(), Residency::kReadback);
      if (!memory.ok()) {
        run.done(memory.status());
        return;
      }
      PairOf(output).Replace(*std::move(memory));
    }
    RunOnStandby(*run.compiled, run.bindings, run.abandoned,
                 [done = std::move(run.done),
                  lost = SteadyNow() - run.queued_at](absl::StatusOr<RunStatistics> result) {
                   if (result.ok()) result->queued += lost;
                   done(std::move(result));
                 });
  }

  const PairedDeviceOptions options_;
  std::atomic<uint64_t> small_runs_ = 0;
  std::atomic<uint64_t> standby_runs_ = 0;
  std::atomic<uint64_t> no_memory_runs_ = 0;
  const std::unique_ptr<Device> standby_;
  const std::unique_ptr<Device> first_;  // last: its callbacks use everything above
};

}  // namespace

std::unique_ptr<Device> CreatePairedDevice(std::unique_ptr<Device> first,
                                           std::unique_ptr<Device> standby,
                                           PairedDeviceOptions options) {
  return std::make_unique<PairedDevice>(std::move(first), std::move(standby), std::move(options));
}

}  // namespace opmill
