// Writes runs into a command list. Runs of one list go side by side, pass by pass, so that a
// barrier serves all of them, and a dispatch all those of one operator.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_RECORDER_H_
#define OPMILL_KERNELS_D3D12_QUEUE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "kernels/d3d12/memory/descriptor_heap.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/queue/queued_run.h"

namespace opmill {

inline constexpr uint64_t kZeroBytes = uint64_t{1} << 20;

// Constants that a list needs for each of the dispatches that its runs consist of: what a dispatch
// of n > 1 of them takes is no more than n times this. The first and the last may be cut, and take
// twice as much.
inline constexpr uint64_t kConstantBytesPerDispatch = 256;
static_assert(KernelConstants::kMaxBytes + 2 * sizeof(Instance) <= 2 * kConstantBytesPerDispatch);
constexpr uint64_t ConstantBytes(uint64_t dispatches) {
  return (dispatches + 2) * kConstantBytesPerDispatch;
}

// Of one list, until the device is done with it.
struct RecordingMemory {
  DescriptorHeap& heap;  // its tables from first_table on, one for each dispatch
  uint32_t first_table = 0;
  const BufferSlice& constants;  // ConstantBytes
  // kZeroBytes that fills copy: driver's copies outrun typed stores (0.7 GB/s on lavapipe) by far.
  const BufferSlice& zeros;
};

class Recorder {
 public:
  Recorder(ID3D12GraphicsCommandList* list, ID3D12RootSignature* root_signature,
           const RecordingMemory& memory);

  // Once. Returns the number of dispatches.
  uint32_t Record(absl::Span<const RunPart> parts);

 private:
  // A resource that kernels write, or that is copied to; others stay in the state that reading
  // them promotes them to. Its own first use in a list does the same: buffers need no barrier to
  // leave the common state, and decay to it when the list has ended.
  struct Tracked {
    ID3D12Resource* resource = nullptr;
    D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON;
    bool is_reread = false;  // by later passes
  };

  // Runs that go through their dispatches together: whole ones of one operator, whose buffers lie
  // in the same resources, or one part of one.
  struct Cohort {
    RunPart part;  // the same of all
    std::vector<const QueuedRun*> runs;
  };
  static std::vector<Cohort> FormCohorts(absl::Span<const RunPart> parts);

  void UploadInputs(absl::Span<const RunPart> parts);
  void RecordFills(absl::Span<const RunPart> parts, size_t level);
  void RecordDispatches(absl::Span<const Cohort> cohorts, size_t level);
  void DownloadOutputs(absl::Span<const RunPart> parts);

  void RecordDispatch(const Cohort& cohort, const PlanCursor& at, uint32_t end_group);
  ConstantsView WriteConstants(absl::Span<const std::byte> constants,
                               absl::Span<const Instance> instances);
  void RecordFill(const QueuedRun& run, const Fill& fill);

  Tracked& Track(ID3D12Resource* resource);
  void Require(ID3D12Resource* resource, D3D12_RESOURCE_STATES state);
  void Flush();
  void MakeWritesVisible();

  ID3D12GraphicsCommandList* const list_;
  const RecordingMemory memory_;
  uint32_t next_table_;
  uint64_t constants_used_ = 0;              // bytes
  ID3D12PipelineState* pipeline_ = nullptr;  // set in the list
  std::vector<Tracked> tracked_;
  std::vector<D3D12_RESOURCE_BARRIER> barriers_;  // not in the list yet
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_RECORDER_H_
