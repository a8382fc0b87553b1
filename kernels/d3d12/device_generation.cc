#include "kernels/d3d12/device_generation.h"

#include <utility>

#include "kernels/base/errors.h"
#include "kernels/d3d12/memory/descriptor_heap.h"
#include "kernels/d3d12/platform.h"

namespace opmill {
namespace {

bool HasUnifiedMemory(ID3D12Device* device) {
  D3D12_FEATURE_DATA_ARCHITECTURE architecture = {};
  return SUCCEEDED(device->CheckFeatureSupport(D3D12_FEATURE_ARCHITECTURE, &architecture,
                                               sizeof(architecture))) &&
         architecture.UMA && architecture.CacheCoherentUMA;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Generation>> Generation::Create(
    const AdapterInfo& adapter, const D3D12DeviceOptions& options, uint64_t number,
    ShaderLibrary& shaders, Counters& counters, std::function<void()> on_loss) {
  ASSIGN_OR_RETURN(ID3D12Device* const opened, OpenAdapter(adapter));
  ComPtr<ID3D12Device> device;
  device.Attach(opened);

  std::shared_ptr<Generation> generation(new Generation);
  generation->number_ = number;
  generation->unified_memory_ = options.allow_unified_memory && HasUnifiedMemory(device.Get());
  generation->health_ = std::make_shared<Health>(device, std::move(on_loss));

  BufferPoolOptions pool = {.unified_memory = generation->unified_memory_,
                            .max_idle_bytes = options.max_idle_bytes};
  if (options.max_host_bytes != 0) pool.max_host_bytes = options.max_host_bytes;
  generation->pool_ = BufferPool::Create(device, generation->health_, pool);

  ASSIGN_OR_RETURN(ComPtr<ID3D12RootSignature> root_signature,
                   CreateRootSignature(device.Get(), *generation->health_));
  generation->pipelines_ = std::make_unique<PipelineCache>(
      device, generation->health_, root_signature, shaders, counters, options.max_live_kernels);
  ASSIGN_OR_RETURN(
      generation->submission_,
      Submission::Create(device, generation->health_, root_signature, generation->pool_, counters,
                         {.unified_memory = generation->unified_memory_,
                          .frames_in_flight = options.frames_in_flight,
                          .max_batch_runs = options.max_batch_runs,
                          .measure_device_time = options.measure_device_time}));
  return generation;
}

}  // namespace opmill
