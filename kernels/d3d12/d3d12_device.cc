#include "kernels/d3d12/d3d12_device.h"

#include <algorithm>
#include <cstring>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/base/errors.h"
#include "kernels/base/on_all_cores.h"
#include "kernels/base/steady_time.h"
#include "kernels/d3d12/compiled_program.h"
#include "kernels/d3d12/device_generation.h"
#include "kernels/d3d12/hresult.h"
#include "kernels/d3d12/memory/d3d12_buffer.h"
#include "kernels/d3d12/queue/queued_run.h"
#include "kernels/d3d12/shader/d3d_compiler.h"
#include "kernels/operators/program_plan.h"

namespace opmill {
namespace {

// How often it is tried to rebuild a lost device.
constexpr absl::Duration kRebuildInterval = absl::Milliseconds(500);
// Runs detect a device loss at once. Without runs, it is checked at this interval.
constexpr absl::Duration kIdleCheckInterval = absl::Seconds(1);
// The time for recreating the lost device's kernels before the new one is reported as available.
constexpr absl::Duration kPreload = absl::Milliseconds(500);

// Wakes the rebuilding thread. Outlives the device if buffers do.
struct LossSignal {
  absl::Mutex mutex;
  SteadyCondVar changed;
  bool is_lost ABSL_GUARDED_BY(mutex) = false;
  bool is_closing ABSL_GUARDED_BY(mutex) = false;
};

// The ranges as buffers of this device.
absl::Status BindTensors(absl::string_view list, std::vector<Range>& ranges,
                         std::vector<BoundTensor>& bound) {
  for (Range& range : ranges) {
    BoundTensor& tensor = bound.emplace_back();
    tensor.buffer = std::dynamic_pointer_cast<D3D12Buffer>(std::move(range.buffer));
    tensor.offset_bytes = range.offset_bytes;
    if (tensor.buffer != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(list, "[", bound.size() - 1, "] belongs to another device."));
  }
  return absl::OkStatus();
}

absl::Status CheckGeneration(absl::string_view list, const std::vector<BoundTensor>& tensors,
                             uint64_t generation) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const D3D12Buffer& buffer = *tensors[i].buffer;
    if (buffer.generation() == generation) continue;
    return buffer.residency() == Residency::kDevice
               ? LostBufferError(absl::StrCat(list, "[", i, "]"))
               : DeviceLostError();
  }
  return absl::OkStatus();
}

absl::Status Bind(Bindings& bindings, QueuedRun& run) {
  if (run.compiled == nullptr) {
    return absl::InvalidArgumentError(
        "The operator is missing or was compiled for another device.");
  }
  const OperatorPlan& plan = run.compiled->plan();
  RETURN_IF_ERROR(CheckBindings(bindings, plan.input_bytes, plan.output_bytes));
  RETURN_IF_ERROR(BindTensors("inputs", bindings.inputs, run.inputs));
  return BindTensors("outputs", bindings.outputs, run.outputs);
}

// Whether the run and its memory are of the generation that would compute it.
absl::Status CheckGeneration(const QueuedRun& run, uint64_t generation) {
  RETURN_IF_ERROR(CheckGeneration("inputs", run.inputs, generation));
  RETURN_IF_ERROR(CheckGeneration("outputs", run.outputs, generation));
  return run.compiled->generation() == generation ? absl::OkStatus() : DeviceLostError();
}

class D3D12Device : public Device {
 public:
  static absl::StatusOr<std::unique_ptr<Device>> Create(const AdapterInfo& adapter,
                                                        const D3D12DeviceOptions& options) {
    std::unique_ptr<D3D12Device> device(new D3D12Device(adapter, options));
    ASSIGN_OR_RETURN(std::shared_ptr<Generation> first, device->NewGeneration());
    device->info_.unified_memory = first->unified_memory();
    device->SetNewest(std::move(first));
    device->watch_ = std::thread([raw = device.get()] { raw->Watch(); });
    return device;
  }

  ~D3D12Device() override {
    {
      absl::MutexLock lock(&losses_->mutex);
      losses_->is_closing = true;
    }
    losses_->changed.SignalAll();
    if (watch_.joinable()) watch_.join();
    if (const std::shared_ptr<Generation> generation = Newest()) generation->submission().Stop();
  }

  const DeviceInfo& info() const override { return info_; }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    ASSIGN_OR_RETURN(OperatorPlan plan, MakePlan(program, plan_options_, abandoned));
    return CompilePlan(program, std::move(plan), abandoned);
  }

  absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompilePlan(
      const Program& program, OperatorPlan plan, const std::stop_token& abandoned = {}) {
    RETURN_IF_ERROR(CheckAbandoned(abandoned));
    ASSIGN_OR_RETURN(const std::shared_ptr<Generation> generation, Living());
    return D3D12CompiledProgram::Create(program, std::move(plan), generation->pipelines(),
                                        generation->pool(), generation->number(), abandoned);
  }

  const PlanOptions& plan_options() const { return plan_options_; }
  uint64_t barriers() const { return counters_.barriers; }
  uint64_t timestamps() const { return counters_.timestamps; }

  void Preload(absl::Time deadline) override {
    const absl::StatusOr<std::shared_ptr<Generation>> generation = Living();
    if (generation.ok()) Preload(**generation, deadline);
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                   Residency residency) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<Generation> generation, Living());
    const Placement placement = residency == Residency::kUpload     ? Placement::kHostInput
                                : residency == Residency::kReadback ? Placement::kHostOutput
                                                                    : Placement::kDevice;
    ASSIGN_OR_RETURN(BufferSlice slice, generation->pool().Allocate(placement, size_bytes));
    if (residency == Residency::kUpload) {  // kernels load complete vectors
      const uint64_t padding = (16 - size_bytes % 16) % 16;
      std::memset(slice.data() + size_bytes, 0, static_cast<size_t>(padding));
    }
    return std::make_shared<D3D12Buffer>(std::move(slice), size_bytes, residency,
                                         generation->number());
  }

  void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
           std::stop_token abandoned, RunCallback done) override {
    auto run = std::make_shared<QueuedRun>();
    run->compiled = std::dynamic_pointer_cast<const D3D12CompiledProgram>(std::move(compiled));
    run->status = Bind(bindings, *run);
    if (bindings.profile != nullptr && run->compiled != nullptr) {
      *bindings.profile = {.report = run->compiled->Report()};
      run->profile = std::move(bindings.profile);
      run->goes_alone = true;
    }
    run->abandoned = std::move(abandoned);
    run->done = std::move(done);
    // A generation refuses runs only if a newer one exists.
    for (;;) {
      const std::shared_ptr<Generation> generation = Newest();
      if (run->status.ok()) run->status = CheckGeneration(*run, generation->number());
      if (generation->submission().Enqueue(run)) return;
    }
  }

  DeviceCounters counters() const override {
    const std::shared_ptr<Generation> generation = Newest();
    const BufferPool::Usage usage = generation->pool().usage();
    return {
        .runs = counters_.runs,
        .submissions = counters_.submissions,
        .dispatches = counters_.dispatches,
        .pipelines_created = counters_.pipelines_created,
        .live_kernels = generation->pipelines().size(),
        .shaders_compiled = shaders_->counters().compiled,
        .resets = counters_.resets,
        .longest_submission = absl::Nanoseconds(counters_.longest_submission_nanoseconds.load()),
        .buffer_bytes_in_use = usage.in_use_bytes,
        .buffer_bytes_pooled = usage.pooled_bytes};
  }

  void ReleaseIdleMemory() override { Newest()->pool().ReleaseIdle(); }
  void ReleaseIdleKernels() override { Newest()->pipelines().ReleaseUnheld(); }

  void InjectLoss() { Newest()->health().MarkLost(); }

 private:
  D3D12Device(const AdapterInfo& adapter, D3D12DeviceOptions options)
      : adapter_(adapter), options_(std::move(options)) {
    info_ = {.name = adapter.name,
             .kind = adapter.kind,
             .driver = adapter.driver,
             .shader_model = "5.1",
             .memory_bytes = adapter.memory_bytes};
    plan_options_ = PlanOptionsFor(adapter.size);
    plan_options_.max_scratch_bytes = options_.max_scratch_bytes;
    if (info_.memory_bytes != 0) {
      plan_options_.max_scratch_bytes =
          std::min(plan_options_.max_scratch_bytes, info_.memory_bytes / 2);
    }
    info_.max_scratch_bytes = plan_options_.max_scratch_bytes;
    options_.frames_in_flight = std::max(1u, options_.frames_in_flight);
    options_.max_batch_runs = std::max(1u, options_.max_batch_runs);
    shaders_ = ShaderLibrary::Create({.cache_directory = options_.shader_cache_directory,
                                      .sources = std::move(options_.shader_sources),
                                      .on_cache_problem = options_.on_cache_problem},
                                     compiler_);
  }

  std::shared_ptr<Generation> Newest() const {
    absl::MutexLock lock(&mutex_);
    return generation_;
  }

  void SetNewest(std::shared_ptr<Generation> generation) {
    absl::MutexLock lock(&mutex_);
    generation_ = std::move(generation);
  }

  absl::StatusOr<std::shared_ptr<Generation>> NewGeneration() {
    return Generation::Create(adapter_, options_, ++last_number_, *shaders_, counters_,
                              [losses = losses_] {
                                absl::MutexLock lock(&losses->mutex);
                                losses->is_lost = true;
                                losses->changed.SignalAll();
                              });
  }

  absl::StatusOr<std::shared_ptr<Generation>> Living() const {
    std::shared_ptr<Generation> newest = Newest();
    if (newest->health().lost()) return DeviceLostError();
    return newest;
  }

  // Replaces the lost generation; null if there is no device now. Runs of the old generation are
  // called back before this returns.
  std::shared_ptr<Generation> Rebuild() {
    const absl::StatusOr<std::shared_ptr<Generation>> next = NewGeneration();
    if (!next.ok()) return nullptr;
    const std::shared_ptr<Generation> lost = Newest();
    SetNewest(*next);
    counters_.resets.fetch_add(1, std::memory_order_relaxed);
    lost->submission().Stop();
    return *next;
  }

  void Preload(Generation& generation, absl::Time deadline) {
    const std::vector<KernelPermutation> kernels = shaders_->Remembered(options_.max_live_kernels);
    OnAllCores(kernels.size(), [&](size_t i) {
      if (SteadyNow() >= deadline) return false;
      // A kernel that fails here fails again, with its error, when an operator needs it.
      generation.pipelines().Get(kernels[i]).IgnoreError();
      return true;
    });
  }

  // Rebuilds a lost device, and reports losses and recoveries.
  void Watch() {
    bool is_available = true;
    const auto is_needed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(losses_->mutex) {
      return losses_->is_closing || (is_available && losses_->is_lost);
    };
    for (;;) {
      {
        absl::MutexLock lock(&losses_->mutex);
        losses_->changed.Await(
            &losses_->mutex, is_needed,
            SteadyNow() + (is_available ? kIdleCheckInterval : kRebuildInterval));
        if (losses_->is_closing) return;
        losses_->is_lost = false;
      }
      if (is_available) {
        const std::shared_ptr<Generation> newest = Newest();
        if (!newest->health().IsRemoved() && !newest->health().lost()) continue;
        Tell(DeviceLostError());
      }
      const std::shared_ptr<Generation> next = Rebuild();
      is_available = next != nullptr;
      if (!is_available) continue;
      Preload(*next, SteadyNow() + kPreload);
      Tell(absl::OkStatus());
    }
  }

  void Tell(const absl::Status& status) const {
    if (options_.on_availability) options_.on_availability(status);
  }

  const AdapterInfo adapter_;
  D3D12DeviceOptions options_;
  DeviceInfo info_;
  PlanOptions plan_options_;
  D3DShaderCompiler compiler_;
  std::unique_ptr<ShaderLibrary> shaders_;
  Counters counters_;

  uint64_t last_number_ = 0;  // used by the constructing thread, later by watch_
  mutable absl::Mutex mutex_;
  std::shared_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);

  const std::shared_ptr<LossSignal> losses_ = std::make_shared<LossSignal>();
  std::thread watch_;
};

}  // namespace

PlanOptions PlanOptionsFor(AdapterSize size) {
  PlanOptions plan;
  plan.parallel_groups = size.groups;
  plan.threads = 256;
  return plan;
}

absl::StatusOr<std::unique_ptr<Device>> CreateD3D12Device(const D3D12DeviceOptions& options) {
  if (!options.shader_cache_directory.empty()) KeepDriverCacheIn(options.shader_cache_directory);
  ASSIGN_OR_RETURN(const std::vector<AdapterInfo> adapters, ListAdapters());
  ASSIGN_OR_RETURN(const std::vector<AdapterInfo> candidates,
                   ChooseAdapters(adapters, options.choice, options.adapter));
  absl::Status status;
  for (const AdapterInfo& adapter : candidates) {
    absl::StatusOr<std::unique_ptr<Device>> device = D3D12Device::Create(adapter, options);
    if (options.on_adapter) options.on_adapter(adapter, device.status());
    if (device.ok()) return device;
    status = absl::Status(device.status().code(),
                          absl::StrCat("Adapter ", adapter.index, " (", adapter.name,
                                       ") cannot be opened: ", device.status().message()));
  }
  return status;
}

void InjectDeviceLossForTest(Device& device) { dynamic_cast<D3D12Device&>(device).InjectLoss(); }

absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompilePlanForTest(Device& device,
                                                                          const OperatorDesc& desc,
                                                                          OperatorPlan plan) {
  auto* const d3d12 = dynamic_cast<D3D12Device*>(&device);
  return d3d12 != nullptr ? d3d12->CompilePlan(ProgramOf(desc), std::move(plan))
                          : device.Compile(desc);
}

const OperatorPlan& PlanForTest(const CompiledProgram& compiled) {
  return dynamic_cast<const D3D12CompiledProgram&>(compiled).plan();
}

uint64_t BarriersForTest(const Device& device) {
  return dynamic_cast<const D3D12Device&>(device).barriers();
}

uint64_t TimestampsForTest(const Device& device) {
  return dynamic_cast<const D3D12Device&>(device).timestamps();
}

PlanOptions PlanOptionsForTest(const Device& device) {
  const auto* const d3d12 = dynamic_cast<const D3D12Device*>(&device);
  return d3d12 != nullptr ? d3d12->plan_options() : PlanOptions();
}

}  // namespace opmill
