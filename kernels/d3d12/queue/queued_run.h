// A run, from Device::Run to its callback.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_
#define OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/d3d12/compiled_program.h"
#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/d3d12/memory/host_buffer.h"
#include "kernels/d3d12/queue/planned_run.h"
#include "kernels/engine/device.h"

namespace opmill {

struct QueuedRun : PlannedRun {
  std::shared_ptr<const D3D12CompiledProgram> compiled;
  std::vector<std::shared_ptr<D3D12HostBuffer>> inputs;
  std::vector<std::shared_ptr<D3D12HostBuffer>> outputs;
  Device::RunCallback done;

  // Memory of this run alone. The device's copies stay empty where kernels work in place.
  BufferSlice scratch;
  std::vector<BufferSlice> device_inputs;
  std::vector<BufferSlice> device_outputs;

  std::chrono::steady_clock::time_point queued_at;
  std::chrono::steady_clock::time_point submitted_at;
  RunStatistics statistics;

  // What kernels see as the buffer of that role.
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

// Every run of this queue is one.
inline QueuedRun& RunOf(PlannedRun& run) { return static_cast<QueuedRun&>(run); }
inline QueuedRun& RunOf(const RunPart& part) { return RunOf(*part.run); }

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_
