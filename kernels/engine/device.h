// The interface between programs and machines: Compile(program) and Run(compiled, bindings).
#ifndef OPMILL_KERNELS_ENGINE_DEVICE_H_
#define OPMILL_KERNELS_ENGINE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/buffers.h"
#include "kernels/program/program.h"

namespace opmill {

enum class DeviceKind : uint32_t { kHardware, kSoftware, kReference, kCpu };

struct DeviceInfo {
  std::string name;  // the adapter's own name
  DeviceKind kind = DeviceKind::kReference;
  std::string driver;              // "vkd3d 1.19 on Vulkan", "d3d12.dll", "host"
  std::string shader_model;        // "5.1"; empty for the reference device
  bool unified_memory = true;      // kernels read the host's bytes in place
  uint64_t memory_bytes = 0;       // device memory; 0 if unknown
  uint64_t max_scratch_bytes = 0;  // limit for a run, in addition to its tensors
  // Programs with smaller inputs have no incremental runs. Unless it is the maximum, Compile is so
  // cheap that a thread with other duties may call it.
  uint64_t min_incremental_bytes = UINT64_MAX;
};

// Memory that several programs of a device may have, by its address.
struct SharedBytes {
  const void* memory = nullptr;
  uint64_t bytes = 0;
};

// What a compiled program costs.
struct ProgramCost {
  uint64_t kept_bytes = 0;               // approximate host memory while it is kept
  std::vector<SharedBytes> shared = {};  // of these, what others may have too; each once
  uint64_t scratch_bytes = 0;            // device memory of a run in addition to its tensors
  // Bytes that a run reads and writes, weighted by the amount of computation; 0 if unknown.
  uint64_t run_bytes = 0;
  uint64_t incremental_bytes = 0;  // memory of an incremental run; 0: it needs the whole input
  std::vector<uint64_t> kernels;   // ids of kernels that are live while it is kept
  // Programs of the same operators for other sizes round each result in the same way if they have
  // the same number here; 0 if that is not known.
  uint64_t rounding = 0;
};

// A program compiled for one device. Immutable; many runs may use it at the same time.
class CompiledProgram {
 public:
  virtual ~CompiledProgram() = default;
  const Program& program() const { return program_; }
  const ProgramCost& cost() const { return cost_; }
  // How the device computes it. Made for each call.
  virtual ProgramReport Report() const { return {}; }

 protected:
  CompiledProgram(Program program, ProgramCost cost)
      : program_(std::move(program)), cost_(std::move(cost)) {}

 private:
  const Program program_;
  const ProgramCost cost_;
};

struct RunStatistics {
  absl::Duration queued;    // from Run to the submission
  absl::Duration executed;  // from the submission to the fence
  // Of the submissions it was in, without copies of inputs and outputs, by the device's own clock;
  // zero if not measured.
  absl::Duration device;
  uint32_t batch_size = 0;  // runs in the same submission
};

// A run that computes while its input arrives, and keeps none of it. Not thread-safe. The device
// must outlive it.
class IncrementalRun {
 public:
  virtual ~IncrementalRun() = default;
  // The next bytes of the input. Those past its end are ignored.
  virtual void Add(absl::Span<const std::byte> bytes) = 0;
  // Call once, after all bytes. Then the outputs are complete.
  virtual RunStatistics Finish() = 0;
};

struct DeviceCounters {
  uint64_t runs = 0;
  uint64_t submissions = 0;
  uint64_t dispatches = 0;            // one may serve many runs
  uint64_t pipelines_created = 0;     // kernel permutations made live
  uint64_t live_kernels = 0;          // pipelines that are live now
  uint64_t shaders_compiled = 0;      // pipelines compiled from HLSL, not read from disk
  uint64_t resets = 0;                // device losses that it recovered from
  absl::Duration longest_submission;  // the longest time a command list occupied the device
  uint64_t buffer_bytes_in_use = 0;   // allocated now
  uint64_t buffer_bytes_pooled = 0;   // held for reuse
  // Of the runs of a device with a standby, those that the standby computed: for their size,
  // because the device was lost, or because the device had no memory for them.
  uint64_t small_runs = 0;
  uint64_t standby_runs = 0;
  uint64_t no_memory_runs = 0;
  bool on_standby = false;  // now: the device is lost, and its standby computes
};

// Thread-safe.
class Device {
 public:
  using RunCallback = std::function<void(absl::StatusOr<RunStatistics>)>;

  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // The device that computes while this one is lost; null if there is none.
  virtual const DeviceInfo* standby() const { return nullptr; }

  // `program` must have passed Validate. The device decides how to compute it. Returns
  // ResourceExhausted if that would need more scratch memory than allowed, and Cancelled soon after
  // a stop of `abandoned`.
  virtual absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) = 0;
  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(const Program& program) {
    return Compile(program, std::stop_token());
  }
  // The program of this validated operator alone.
  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(const OperatorDesc& desc) {
    return Compile(ProgramOf(desc));
  }

  // Creates the kernels that earlier processes left in the disk cache, most recently used first, so
  // that no request waits for them. Starts nothing more after `deadline`.
  virtual void Preload(absl::Time /*deadline*/) {}

  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t size_bytes,
                                                           Residency residency) = 0;

  // Queues the run. The callback is called once, from a thread of the device or from within Run,
  // and must not block. Unavailable means that the device was lost: compile and run again, with new
  // buffers.
  //
  // A stop of `abandoned` means that no caller waits for the run any more. A run that has not
  // started does not start. A run that has started gets no further part; the device finishes what
  // it has. Then the callback is called with Cancelled. A stop that comes too late has no effect.
  virtual void Run(std::shared_ptr<const CompiledProgram> compiled, Bindings bindings,
                   std::stop_token abandoned, RunCallback done) = 0;

  // Begins an incremental run, which keeps the program and the buffers alive. A buffer of
  // ProgramCost::incremental_bytes, which must not be 0, is bound in place of the input.
  virtual absl::StatusOr<std::unique_ptr<IncrementalRun>> BeginIncremental(
      const std::shared_ptr<const CompiledProgram>& /*compiled*/, const Bindings& /*bindings*/) {
    return absl::UnimplementedError("The device has no incremental runs.");
  }

  virtual DeviceCounters counters() const = 0;

  // Returns memory that is kept for reuse to the system.
  virtual void ReleaseIdleMemory() {}
  // Releases live kernels that no compiled operator needs.
  virtual void ReleaseIdleKernels() {}

  absl::StatusOr<RunStatistics> RunAndWait(std::shared_ptr<const CompiledProgram> compiled,
                                           Bindings bindings);
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_ENGINE_DEVICE_H_
