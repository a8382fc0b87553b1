// The Direct3D 12 device, as the rest of the project sees it.
#ifndef OPMILL_KERNELS_D3D12_D3D12_DEVICE_H_
#define OPMILL_KERNELS_D3D12_D3D12_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/d3d12/adapter/adapters.h"
#include "kernels/d3d12/shader/shader_library.h"
#include "kernels/engine/device.h"
#include "kernels/plan/plan.h"

namespace opmill {

struct D3D12DeviceOptions {
  AdapterChoice choice = AdapterChoice::kAuto;
  std::string adapter;  // an index or a part of the name; empty: the best that opens
  // Told of each adapter tried, in order, and what came of it. The last is the device's.
  std::function<void(const AdapterInfo& adapter, const absl::Status& opened)> on_adapter;

  // False copies through upload and readback heaps even where the adapter shares the host's memory.
  bool allow_unified_memory = true;

  // Told Unavailable when the device is lost, and Ok when another stands in its place, which it
  // does by itself as soon as may be. In turn, from one thread.
  std::function<void(const absl::Status& status)> on_availability;
  // Whether callers who meet the loss rebuild the device and wait for it. Otherwise they are told
  // Unavailable until the device has been rebuilt, and callbacks may call Allocate.
  bool callers_rebuild = true;

  std::string shader_cache_directory;  // UTF-8; empty: bytecode is not kept on disk
  std::function<void(const std::string& sentence)> on_cache_problem;  // as ShaderLibraryOptions
  ShaderSources shader_sources;  // instead of the embedded ones, where not empty

  // Of the host's memory that buffers may take, which is all of theirs where the adapter shares it;
  // 0: as many as the driver gives.
  uint64_t max_host_bytes = 0;
  uint64_t max_scratch_bytes = PlanOptions().max_scratch_bytes;  // of one operator
  uint64_t max_idle_bytes = uint64_t{2} << 30;                   // kept for buffers to come

  // Live kernels that are kept where no operator needs them; those of operators count too.
  size_t max_live_kernels = 512;

  uint32_t frames_in_flight = 3;  // submissions at a time, at least 1
  uint32_t max_batch_runs = 64;   // runs in one submission

  // RunStatistics::device. Two timestamps and their copy cost a submission about as much as a small
  // kernel on lavapipe, which waits for all of its threads at each.
  bool measure_device_time = true;
};

// NotFound when no adapter fits the options; the last adapter's own error when none opens.
// Callbacks of its runs may call Run, Allocate as said there, and nothing else of it.
absl::StatusOr<std::unique_ptr<Device>> CreateD3D12Device(const D3D12DeviceOptions& options);

// What plans may assume of such an adapter, before its memory is looked at. Every device has these
// `threads`, which are in the names of kernels.
PlanOptions PlanOptionsFor(DeviceKind kind);

// Makes the device behave as if the driver had reported its loss: what is in flight ends
// Unavailable, and it is rebuilt. `device` is one of CreateD3D12Device.
void InjectDeviceLossForTest(Device& device);

// Compiles with another plan than the device's own. A device that is none of CreateD3D12Device
// compiles the operator as it does.
absl::StatusOr<std::shared_ptr<const CompiledOperator>> CompilePlanForTest(Device& device,
                                                                           const OperatorDesc& desc,
                                                                           OperatorPlan plan);
// The plan of an operator that was compiled by a device of CreateD3D12Device.
const OperatorPlan& PlanForTest(const CompiledOperator& compiled);
// What such a device gives to the planner; the defaults for another.
PlanOptions PlanOptionsForTest(const Device& device);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_D3D12_DEVICE_H_
