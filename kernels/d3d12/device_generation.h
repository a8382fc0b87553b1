// Everything that is lost together with a device, from the ID3D12Device to its threads. After a
// loss, the device builds a new generation.
#ifndef OPMILL_KERNELS_D3D12_DEVICE_GENERATION_H_
#define OPMILL_KERNELS_D3D12_DEVICE_GENERATION_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/counters.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/d3d12/queue/submission.h"
#include "kernels/d3d12/shader/pipeline_cache.h"
#include "kernels/d3d12/shader/shader_library.h"

namespace opmill {

class Generation {
 public:
  // `shaders` and `counters` must outlive it. `number` must be unique. `on_loss` is passed to
  // Health.
  static absl::StatusOr<std::shared_ptr<Generation>> Create(const AdapterInfo& adapter,
                                                            const D3D12DeviceOptions& options,
                                                            uint64_t number, ShaderLibrary& shaders,
                                                            Counters& counters,
                                                            std::function<void()> on_loss);

  uint64_t number() const { return number_; }
  bool unified_memory() const { return unified_memory_; }
  Health& health() { return *health_; }
  BufferPool& pool() { return *pool_; }
  PipelineCache& pipelines() { return *pipelines_; }
  Submission& submission() { return *submission_; }

 private:
  Generation() = default;

  uint64_t number_ = 0;
  bool unified_memory_ = false;
  std::shared_ptr<Health> health_;
  std::shared_ptr<BufferPool> pool_;
  std::unique_ptr<PipelineCache> pipelines_;
  std::unique_ptr<Submission> submission_;  // declared last: its threads use the members above
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_DEVICE_GENERATION_H_
