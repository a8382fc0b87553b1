// Records runs into a command list. The runs of one list are recorded pass by pass, so that they
// share barriers, and runs of one operator share dispatches.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_RECORDER_H_
#define OPMILL_KERNELS_D3D12_QUEUE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "kernels/d3d12/memory/descriptor_heap.h"
#include "kernels/d3d12/memory/device_constants.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/queue/queued_run.h"
#include "kernels/d3d12/queue/timestamps.h"

namespace opmill {

inline constexpr uint64_t kZeroBytes = uint64_t{1} << 20;

// The constants that a list needs per dispatch of its runs. A dispatch that n > 1 runs share takes
// no more than n times this. The first and the last dispatch may be split, and take twice as much.
inline constexpr uint64_t kConstantBytesPerDispatch = 512;
static_assert(KernelConstants::kMaxBytes + 2 * sizeof(Instance) <= 2 * kConstantBytesPerDispatch);
constexpr uint64_t ConstantBytes(uint64_t dispatches) {
  return (dispatches + 2) * kConstantBytesPerDispatch;
}

// The memory of one command list, until the device is done with it.
struct RecordingMemory {
  DescriptorHeap& heap;  // one table per dispatch, from first_table on
  uint32_t first_table = 0;
  uint32_t first_more_reads = 0;  // the first table of further reads
  const BufferSlice& constants;   // ConstantBytes
  // kZeroBytes of zeros, the source of fills: the driver's copies are much faster than typed stores
  // (0.7 GB/s on lavapipe).
  const DeviceConstants& zeros;
  const Timestamps* timestamps = nullptr;  // null: none
  uint32_t first_timestamp = 0;            // before the kernels; the next one is after them
  // For a list of one part: before its first step, and after each of StepNumbersOf. Null: none.
  const Timestamps* step_timestamps = nullptr;
};

// The steps that a part has, wholly or in part, in their order: values of the plan's `operators`.
// Empty if the plan has none. A step is the passes of one operator that follow each other, each
// with the fills and barriers before it.
std::vector<uint32_t> StepNumbersOf(const RunPart& part);

class Recorder {
 public:
  Recorder(ID3D12GraphicsCommandList* list, ID3D12RootSignature* root_signature,
           const RecordingMemory& memory);

  // May be called once. Returns the number of dispatches.
  uint32_t Record(absl::Span<const RunPart> parts);
  uint32_t barrier_calls() const { return barrier_calls_; }
  uint32_t timestamps() const { return timestamps_; }
  // What the list copies to the device. It stays there once the list has been submitted.
  const std::vector<const DeviceConstants*>& copied_constants() const { return copied_constants_; }

 private:
  // A resource that kernels write or that is a copy target. Other resources stay in the state to
  // which reading promotes them. The first use of a tracked resource in a list needs no barrier
  // either: buffers are promoted from the common state, and decay to it at the end of the list. If
  // the list continues a run, the list before may still use the resource, so it gets one.
  struct Tracked {
    ID3D12Resource* resource = nullptr;
    D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON;
    bool is_read = false;     // by kernels of this level
    bool is_written = false;  // by kernels of this level
    bool was_used = false;    // by kernels of earlier levels
  };

  // Runs that share their dispatches: either whole runs of one operator whose buffers are in the
  // same resources, or a part of one run.
  struct Cohort {
    RunPart part;  // the same range for all runs
    std::vector<const QueuedRun*> runs;
  };
  static std::vector<Cohort> FormCohorts(absl::Span<const RunPart> parts);

  void Upload(absl::Span<const RunPart> parts);
  void FindNewConstants(absl::Span<const RunPart> parts);
  void RecordFills(absl::Span<const RunPart> parts, size_t level);
  // Makes what earlier levels have written visible to the kernels of this one.
  void PrepareLevel(absl::Span<const RunPart> parts, size_t level);
  void RecordTimestamp(uint32_t index);
  void RecordStepTimestamp();
  void FindUses(absl::Span<const RunPart> parts, size_t level);
  void RecordDispatches(absl::Span<const Cohort> cohorts, size_t level);
  void DownloadOutputs(absl::Span<const RunPart> parts);

  void RecordDispatch(const Cohort& cohort, const PlanCursor& at, uint32_t end_group);
  ConstantsView WriteConstants(absl::Span<const std::byte> constants,
                               absl::Span<const Instance> instances);
  void RecordFill(const QueuedRun& run, const Fill& fill);

  Tracked& Track(ID3D12Resource* resource);
  void Require(ID3D12Resource* resource, D3D12_RESOURCE_STATES state);
  void Flush();

  ID3D12GraphicsCommandList* const list_;
  const RecordingMemory memory_;
  uint32_t next_table_;
  uint32_t next_more_reads_;
  bool continues_ = false;                   // what an earlier list has begun
  bool follows_other_lists_ = false;         // reads what they have written
  uint64_t constants_used_ = 0;              // bytes
  ID3D12PipelineState* pipeline_ = nullptr;  // the last one set in the list
  std::vector<Tracked> tracked_;
  std::vector<D3D12_RESOURCE_BARRIER> barriers_;  // not recorded yet
  std::vector<const DeviceConstants*> copied_constants_;
  uint32_t barrier_calls_ = 0;
  uint32_t timestamps_ = 0;
  uint32_t next_step_timestamp_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_RECORDER_H_
