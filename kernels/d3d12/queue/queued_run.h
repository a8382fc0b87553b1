// A run, from Device::Run to its callback.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_
#define OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/algorithm/container.h"
#include "kernels/d3d12/compiled_program.h"
#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/d3d12/memory/d3d12_buffer.h"
#include "kernels/d3d12/queue/planned_run.h"
#include "kernels/engine/device.h"
#include "kernels/engine/program_report.h"

namespace opmill {

// A range that is bound to an input or output.
struct BoundTensor {
  std::shared_ptr<D3D12Buffer> buffer;
  uint64_t offset_bytes = 0;
  BufferSlice copy;  // in the device's memory; empty where kernels work in place

  SlicePart bound() const { return buffer->slice().From(offset_bytes); }
  SlicePart on_device() const { return copy ? copy.From(0) : bound(); }
};

struct QueuedRun : PlannedRun {
  std::shared_ptr<const D3D12CompiledProgram> compiled;
  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;
  Device::RunCallback done;
  std::shared_ptr<RunProfile> profile;  // gets the times of steps; null: they are not measured

  BufferSlice scratch;  // of this run alone

  std::chrono::steady_clock::time_point queued_at;
  std::chrono::steady_clock::time_point submitted_at;
  RunStatistics statistics;

  // What kernels see as the buffer of that role.
  SlicePart BufferOf(BufferRole role) const {
    switch (role.kind) {
      case BufferRole::Kind::kInput:
        return inputs[role.index].on_device();
      case BufferRole::Kind::kOutput:
        return outputs[role.index].on_device();
      case BufferRole::Kind::kConstant:
        return compiled->weight(role.index).From(0);
      case BufferRole::Kind::kScratch:
        break;
    }
    return scratch.From(0);
  }
  // The memory that is the run's alone.
  void ReleaseMemory() {
    scratch = {};
    for (BoundTensor& input : inputs) input.copy = {};
    for (BoundTensor& output : outputs) output.copy = {};
  }
  bool uses_device_buffers() const {
    const auto stays = [](const BoundTensor& tensor) {
      return tensor.buffer->residency() == Residency::kDevice;
    };
    return absl::c_any_of(inputs, stays) || absl::c_any_of(outputs, stays);
  }
};

// Every run of this queue is one.
inline QueuedRun& RunOf(PlannedRun& run) { return static_cast<QueuedRun&>(run); }
inline QueuedRun& RunOf(const RunPart& part) { return RunOf(*part.run); }

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_QUEUED_RUN_H_
