// A compiled program with its objects on the device.
#ifndef OPMILL_KERNELS_D3D12_COMPILED_PROGRAM_H_
#define OPMILL_KERNELS_D3D12_COMPILED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/d3d12/memory/descriptor_heap.h"
#include "kernels/d3d12/memory/device_constants.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/queue/pacing.h"
#include "kernels/d3d12/shader/pipeline_cache.h"
#include "kernels/engine/device.h"
#include "kernels/plan/plan.h"

namespace opmill {

class D3D12CompiledProgram : public CompiledProgram {
 public:
  // Returns Internal if a view of the plan exceeds its buffer, or a grid exceeds Direct3D's limits;
  // Cancelled after a stop of `abandoned`.
  static absl::StatusOr<std::shared_ptr<const D3D12CompiledProgram>> Create(
      const Program& program, OperatorPlan plan, PipelineCache& pipelines, BufferPool& pool,
      uint64_t generation, const std::stop_token& abandoned);

  ProgramReport Report() const override;
  const OperatorPlan& plan() const { return plan_; }
  uint64_t generation() const { return generation_; }
  Pace& pace() const { return pace_; }

  ID3D12PipelineState* pipeline(uint32_t kernel) const { return pipelines_[kernel].get(); }
  // Everything that it keeps in the device's memory.
  absl::Span<const DeviceConstants> kept() const { return kept_; }
  ConstantsView constants(size_t pass, size_t dispatch) const;
  // A constant of the program.
  const BufferSlice& weight(uint32_t index) const { return kept_[index].slice(); }

 private:
  D3D12CompiledProgram(const Program& program, OperatorPlan plan, uint64_t generation);
  absl::Status KeepWeights(BufferPool& pool, const std::stop_token& abandoned);
  absl::Status KeepConstants(BufferPool& pool);

  const OperatorPlan plan_;
  const uint64_t generation_;
  mutable Pace pace_;
  uint64_t dispatch_count_ = 0;
  std::vector<PipelineCache::Pipeline> pipelines_;  // one for each of plan().kernels
  std::vector<uint64_t> first_dispatch_;            // index of the first dispatch of each pass
  // The constants of the program, and, if there are dispatches, theirs.
  std::vector<DeviceConstants> kept_;
  D3D12_GPU_VIRTUAL_ADDRESS constants_address_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_COMPILED_PROGRAM_H_
