// The single shader-visible descriptor heap of a device, divided into tables. A table holds the
// bindings of a dispatch: its constants, then its first reads, then its writes. Further reads are
// in tables of their own, behind the others.
#ifndef OPMILL_KERNELS_D3D12_MEMORY_DESCRIPTOR_HEAP_H_
#define OPMILL_KERNELS_D3D12_MEMORY_DESCRIPTOR_HEAP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/platform.h"
#include "kernels/plan/plan.h"

namespace opmill {

inline constexpr uint32_t kTableSlots = 1 + kFirstReadSlots + kWriteSlots;
inline constexpr uint32_t kMoreReadSlots = kReadSlots - kFirstReadSlots;

// In vkd3d's heaps, each descriptor takes memory and time, for any size of the heap
// (vulkan_limits.h).
inline constexpr uint32_t kMaxHeapDescriptors = 16384;

// The root signature of every pipeline: a table, and one of further reads, which only dispatches
// that have them set. Constants are in the first, because vkd3d puts a root descriptor into a
// separate set for every dispatch.
absl::StatusOr<ComPtr<ID3D12RootSignature>> CreateRootSignature(ID3D12Device* device,
                                                                Health& health);
inline constexpr UINT kRootTable = 0;
inline constexpr UINT kMoreReadsTable = 1;

// The constants of a dispatch. The size must be a multiple of
// D3D12_CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT.
struct ConstantsView {
  D3D12_GPU_VIRTUAL_ADDRESS address = 0;
  uint32_t size_bytes = 0;
};

// A view of a part of a resource. A count of 0 means that the view is absent.
struct ResourceView {
  ID3D12Resource* resource = nullptr;
  ViewFormat format = ViewFormat::kVector;
  uint64_t offset_bytes = 0;  // in the resource; a multiple of the element
  uint64_t element_count = 0;
};

class DescriptorHeap {
 public:
  // Fails if the tables need more than kMaxHeapDescriptors.
  static absl::StatusOr<std::unique_ptr<DescriptorHeap>> Create(ComPtr<ID3D12Device> device,
                                                                Health& health, uint32_t tables,
                                                                uint32_t more_reads_tables);

  ID3D12DescriptorHeap* heap() const { return heap_.Get(); }

  // The caller must ensure that no command in flight uses the table.
  D3D12_GPU_DESCRIPTOR_HANDLE WriteTable(uint32_t table, const ConstantsView& constants,
                                         const std::array<ResourceView, kReadSlots>& reads,
                                         const std::array<ResourceView, kWriteSlots>& writes);
  // The same for a table of the reads after the first.
  D3D12_GPU_DESCRIPTOR_HANDLE WriteMoreReads(uint32_t table,
                                             const std::array<ResourceView, kReadSlots>& reads);

 private:
  DescriptorHeap(ComPtr<ID3D12Device> device, ComPtr<ID3D12DescriptorHeap> heap, uint32_t tables);

  D3D12_CPU_DESCRIPTOR_HANDLE SlotAt(uint64_t offset) const;
  void WriteReads(absl::Span<const ResourceView> reads, D3D12_CPU_DESCRIPTOR_HANDLE& slot);

  const ComPtr<ID3D12Device> device_;
  const ComPtr<ID3D12DescriptorHeap> heap_;
  const D3D12_CPU_DESCRIPTOR_HANDLE cpu_start_;
  const D3D12_GPU_DESCRIPTOR_HANDLE gpu_start_;
  const uint32_t stride_;
  const uint64_t more_reads_start_;  // in bytes
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_MEMORY_DESCRIPTOR_HEAP_H_
