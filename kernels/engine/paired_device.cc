#include "kernels/engine/paired_device.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

class PairedProgram : public CompiledProgram {
 public:
  // `on_first` is null for a small program, and for one that was compiled during a loss.
  PairedProgram(const Program& program, std::shared_ptr<const CompiledProgram> on_first,
                std::shared_ptr<const CompiledProgram> on_standby, bool is_small)
      : CompiledProgram(program, CostOf(on_first.get(), *on_standby)),
        on_first_(std::move(on_first)),
        on_standby_(std::move(on_standby)),
        is_small_(is_small) {}

  const std::shared_ptr<const CompiledProgram>& on_first() const { return on_first_; }
  const std::shared_ptr<const CompiledProgram>& on_standby() const { return on_standby_; }
  bool is_small() const { return is_small_; }

 private:
  static ProgramCost CostOf(const CompiledProgram* on_first, const CompiledProgram& on_standby) {
    ProgramCost cost = on_standby.cost();
    cost.incremental_bytes = 0;
    if (on_first == nullptr) return cost;
    cost.kept_bytes += on_first->cost().kept_bytes;
    cost.scratch_bytes = std::max(cost.scratch_bytes, on_first->cost().scratch_bytes);
    cost.kernels = on_first->cost().kernels;
    return cost;
  }

  const std::shared_ptr<const CompiledProgram> on_first_;
  const std::shared_ptr<const CompiledProgram> on_standby_;
  const bool is_small_;
};

class PairedBuffer : public HostBuffer {
 public:
  PairedBuffer(std::shared_ptr<HostBuffer> memory, bool is_of_first)
      : memory_(std::move(memory)), is_of_first_(is_of_first) {}

  absl::Span<std::byte> bytes() override { return memory_->bytes(); }
  HostBuffer* memory() const { return memory_.get(); }
  bool is_of_first() const { return is_of_first_; }

  void Replace(std::shared_ptr<HostBuffer> memory) {
    lost_memory_ = std::exchange(memory_, std::move(memory));
    is_of_first_ = false;
  }

 private:
  std::shared_ptr<HostBuffer> memory_;
  std::shared_ptr<HostBuffer> lost_memory_;
  bool is_of_first_;
};

PairedBuffer& PairOf(const std::shared_ptr<HostBuffer>& buffer) {
  return static_cast<PairedBuffer&>(*buffer);
}

// The memory itself, which keeps alive what the caller has bound.
std::shared_ptr<HostBuffer> MemoryOf(const std::shared_ptr<HostBuffer>& buffer) {
  return {buffer, PairOf(buffer).memory()};
}

std::vector<std::shared_ptr<HostBuffer>> MemoryOf(
    const std::vector<std::shared_ptr<HostBuffer>>& buffers) {
  std::vector<std::shared_ptr<HostBuffer>> memory;
  for (const std::shared_ptr<HostBuffer>& buffer : buffers) memory.push_back(MemoryOf(buffer));
  return memory;
}

void Copy(HostBuffer& from, HostBuffer& to) {
  if (from.bytes().empty()) return;
  std::memcpy(to.bytes().data(), from.bytes().data(), from.bytes().size());
}

class PairedDevice : public Device {
 public:
  PairedDevice(std::unique_ptr<Device> first, std::unique_ptr<Device> standby,
               PairedDeviceOptions options)
      : options_(std::move(options)), standby_(std::move(standby)), first_(std::move(first)) {}

  const DeviceInfo& info() const override { return first_->info(); }
  const DeviceInfo* standby() const override { return &standby_->info(); }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(const Program& program) override {
    ASSIGN_OR_RETURN(std::shared_ptr<const CompiledProgram> on_standby, standby_->Compile(program));
    std::shared_ptr<const CompiledProgram> on_first;
    const bool is_small = on_standby->cost().run_bytes <= options_.small_bytes;
    if (!is_small && first_is_available()) {
      absl::StatusOr<std::shared_ptr<const CompiledProgram>> compiled = first_->Compile(program);
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

  absl::StatusOr<std::shared_ptr<HostBuffer>> Allocate(uint64_t size_bytes,
                                                       BufferUse use) override {
    if (size_bytes > options_.small_bytes && first_is_available()) {
      absl::StatusOr<std::shared_ptr<HostBuffer>> memory = first_->Allocate(size_bytes, use);
      if (memory.ok()) return std::make_shared<PairedBuffer>(*std::move(memory), true);
      if (!absl::IsUnavailable(memory.status())) return memory.status();
    }
    ASSIGN_OR_RETURN(std::shared_ptr<HostBuffer> memory, standby_->Allocate(size_bytes, use));
    return std::make_shared<PairedBuffer>(std::move(memory), false);
  }

  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    auto ours = std::static_pointer_cast<const PairedProgram>(std::move(compiled));
    if (ours->is_small()) {
      small_runs_.fetch_add(1, std::memory_order_relaxed);
      RunOnStandby(*ours, bindings, std::move(abandoned), std::move(done));
      return;
    }
    Bindings on_first;
    const absl::Status bound = ours->on_first() == nullptr || !first_is_available()
                                   ? FirstIsLost()
                                   : BindFirst(bindings, on_first);
    if (!bound.ok()) {
      (absl::IsUnavailable(bound) ? standby_runs_ : no_memory_runs_)
          .fetch_add(1, std::memory_order_relaxed);
      RunOnStandby(*ours, bindings, std::move(abandoned), std::move(done));
      return;
    }
    auto run = std::make_shared<FirstRun>(
        FirstRun{ours, std::move(bindings), on_first.outputs, abandoned, std::move(done)});
    first_->Run(ours->on_first(), std::move(on_first), std::move(abandoned),
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
    std::vector<std::shared_ptr<HostBuffer>> outputs_of_first;  // those that it writes to
    std::stop_token abandoned;
    RunCallback done;
    absl::Time queued_at = SteadyNow();

    void CopyOutputs() const {
      for (size_t i = 0; i < bindings.outputs.size(); ++i) {
        if (!PairOf(bindings.outputs[i]).is_of_first()) {
          Copy(*outputs_of_first[i], *bindings.outputs[i]);
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
    const auto bind = [this](const std::vector<std::shared_ptr<HostBuffer>>& from, BufferUse use,
                             std::vector<std::shared_ptr<HostBuffer>>& to) -> absl::Status {
      for (const std::shared_ptr<HostBuffer>& buffer : from) {
        if (PairOf(buffer).is_of_first()) {
          to.push_back(MemoryOf(buffer));
          continue;
        }
        const uint64_t size_bytes = buffer->bytes().size();
        if (size_bytes > options_.small_bytes) return FirstIsLost();
        ASSIGN_OR_RETURN(std::shared_ptr<HostBuffer> copy, first_->Allocate(size_bytes, use));
        if (use == BufferUse::kInput) Copy(*buffer, *copy);
        to.push_back(std::move(copy));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(bind(bindings.inputs, BufferUse::kInput, on_first.inputs));
    return bind(bindings.outputs, BufferUse::kOutput, on_first.outputs);
  }

  void RunOnStandby(const PairedProgram& compiled, const Bindings& bindings,
                    std::stop_token abandoned, RunCallback done) {
    standby_->Run(compiled.on_standby(), {MemoryOf(bindings.inputs), MemoryOf(bindings.outputs)},
                  std::move(abandoned), std::move(done));
  }

  // The first device was lost under the run.
  void RunAgain(FirstRun& run) {
    standby_runs_.fetch_add(1, std::memory_order_relaxed);
    for (const std::shared_ptr<HostBuffer>& output : run.bindings.outputs) {
      if (!PairOf(output).is_of_first()) continue;
      absl::StatusOr<std::shared_ptr<HostBuffer>> memory =
          standby_->Allocate(output->bytes().size(), BufferUse::kOutput);
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
