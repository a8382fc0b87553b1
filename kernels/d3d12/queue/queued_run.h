// A run, from Device::Run to its callback.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_
#define OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "kernels/d3d12/compiled_operator.h"
#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/d3d12/memory/host_buffer.h"
#include "kernels/d3d12/queue/pacing.h"
#include "kernels/engine/device.h"

namespace opmill {

struct QueuedRun {
  std::shared_ptr<const D3D12CompiledOperator> compiled;
  std::vector<std::shared_ptr<D3D12HostBuffer>> inputs;
  std::vector<std::shared_ptr<D3D12HostBuffer>> outputs;
  std::stop_token abandoned;
  Device::RunCallback done;

  // The memory of this run. The device's copies stay empty if kernels work in place.
  bool has_memory = false;
  BufferSlice scratch;
  std::vector<BufferSlice> device_inputs;
  std::vector<BufferSlice> device_outputs;

  PlanCursor next;      // the first position that has not been recorded
  absl::Status status;  // why the rest will not be recorded
  std::chrono::steady_clock::time_point queued_at;
  std::chrono::steady_clock::time_point submitted_at;
  RunStatistics statistics;

  bool is_under_way() const { return next != PlanCursor(); }

  // The buffer that kernels see for this role.
  const BufferSlice& BufferOf(BufferRole role) const {
    switch (role.kind) {
      case BufferRole::Kind::kInput:
        return device_inputs.empty() ? inputs[role.index]->slice() : device_inputs[role.index];
      case BufferRole::Kind::kOutput:
        return device_outputs.empty() ? outputs[role.index]->slice() : device_outputs[role.index];
      case BufferRole::Kind::kScratch:
        break;
    }
    return scratch;
  }
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_
