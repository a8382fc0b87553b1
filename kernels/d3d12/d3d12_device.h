// The public interface of the Direct3D 12 device.
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
  std::string adapter;  // an index or part of the name; empty: the best that can be opened
  // Called for each adapter that is tried, in order, with the result. The last one is in use.
  std::function<void(const AdapterInfo& adapter, const absl::Status& opened)> on_adapter;

  // If false, copies through upload and readback heaps even on adapters that share the host's
  // memory.
  bool allow_unified_memory = true;

  // Called with Unavailable when the device is lost, and with OK when it has been rebuilt. The
  // calls come in order, from the thread that rebuilds the device, which starts when the first of
  // them has returned. Until then callers of the device get Unavailable.
  std::function<void(const absl::Status& status)> on_availability;

  std::string shader_cache_directory;  // UTF-8; empty: bytecode is not kept on disk
  std::function<void(const std::string& sentence)> on_cache_problem;  // see ShaderLibraryOptions
  ShaderSources shader_sources;  // if not empty, replaces the embedded sources

  // The most host memory that buffers may use: all buffers on adapters that share the host's
  // memory. 0: no limit except the driver's.
  uint64_t max_host_bytes = 0;
  uint64_t max_scratch_bytes = PlanOptions().max_scratch_bytes;  // of one operator
  uint64_t max_idle_bytes = uint64_t{2} << 30;                   // kept for reuse

  // The number of live kernels above which kernels that no operator needs are released. Kernels of
  // compiled operators count towards it.
  size_t max_live_kernels = 512;

  uint32_t frames_in_flight = 3;  // concurrent submissions, at least 1
  uint32_t max_batch_runs = 64;   // runs in one submission

  // Measures RunStatistics::device. On lavapipe, two timestamps and their copy cost a submission
  // about as much as a small kernel, because it waits for all of its threads at each.
  bool measure_device_time = true;
};

// Returns NotFound if no adapter matches the options, or the error of the last adapter if none can
// be opened. Run callbacks may call Run and Allocate, but no other method of the device.
absl::StatusOr<std::unique_ptr<Device>> CreateD3D12Device(const D3D12DeviceOptions& options);

// The plan options for an adapter of this size, before its memory is taken into account. All
// adapters have the same `threads`, which are part of the names of kernels.
PlanOptions PlanOptionsFor(AdapterSize size = {});

// Simulates the loss of the device: runs in flight end with Unavailable, and the device is rebuilt.
// `device` must come from CreateD3D12Device.
void InjectDeviceLossForTest(Device& device);

// Compiles `plan` instead of the device's own plan. Other devices compile `desc` as usual.
absl::StatusOr<std::shared_ptr<const CompiledProgram>> CompilePlanForTest(Device& device,
                                                                          const OperatorDesc& desc,
                                                                          OperatorPlan plan);
// The plan of an operator that a device of CreateD3D12Device has compiled.
const OperatorPlan& PlanForTest(const CompiledProgram& compiled);
// How often a device of CreateD3D12Device has recorded barriers.
uint64_t BarriersForTest(const Device& device);
// How many timestamps it has recorded.
uint64_t TimestampsForTest(const Device& device);
// The plan options of a device of CreateD3D12Device; the defaults for other devices.
PlanOptions PlanOptionsForTest(const Device& device);

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_D3D12_DEVICE_H_
