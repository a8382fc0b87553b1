#include "kernels/d3d12/memory/descriptor_heap.h"

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

DXGI_FORMAT FormatOf(ViewFormat format) {
  switch (format) {
    case ViewFormat::kUint8:
      return DXGI_FORMAT_R8_UINT;
    case ViewFormat::kUint16:
      return DXGI_FORMAT_R16_UINT;
    case ViewFormat::kUint32:
      return DXGI_FORMAT_R32_UINT;
    case ViewFormat::kUint32x2:
      return DXGI_FORMAT_R32G32_UINT;
    case ViewFormat::kVector:
      break;
  }
  return DXGI_FORMAT_R32G32B32A32_UINT;
}

D3D12_SHADER_RESOURCE_VIEW_DESC ReadDesc(const ResourceView& view) {
  D3D12_SHADER_RESOURCE_VIEW_DESC desc = {};
  desc.Format = FormatOf(view.format);
  desc.ViewDimension = D3D12_SRV_DIMENSION_BUFFER;
  desc.Shader4ComponentMapping = D3D12_DEFAULT_SHADER_4_COMPONENT_MAPPING;
  desc.Buffer.FirstElement = view.offset_bytes / ViewElementBytes(view.format);
  desc.Buffer.NumElements = static_cast<UINT>(view.element_count);
  return desc;
}

D3D12_UNORDERED_ACCESS_VIEW_DESC WriteDesc(const ResourceView& view) {
  D3D12_UNORDERED_ACCESS_VIEW_DESC desc = {};
  desc.Format = FormatOf(view.format);
  desc.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
  desc.Buffer.FirstElement = view.offset_bytes / ViewElementBytes(view.format);
  desc.Buffer.NumElements = static_cast<UINT>(view.element_count);
  return desc;
}

}  // namespace

absl::StatusOr<ComPtr<ID3D12RootSignature>> CreateRootSignature(ID3D12Device* device,
                                                                Health& health) {
  D3D12_DESCRIPTOR_RANGE ranges[3] = {};
  D3D12_DESCRIPTOR_RANGE more_reads = {};
  ranges[0].RangeType = D3D12_DESCRIPTOR_RANGE_TYPE_CBV;
  ranges[0].NumDescriptors = 1;
  ranges[1].RangeType = D3D12_DESCRIPTOR_RANGE_TYPE_SRV;
  ranges[1].NumDescriptors = kFirstReadSlots;
  ranges[1].OffsetInDescriptorsFromTableStart = 1;
  ranges[2].RangeType = D3D12_DESCRIPTOR_RANGE_TYPE_UAV;
  ranges[2].NumDescriptors = kWriteSlots;
  ranges[2].OffsetInDescriptorsFromTableStart = 1 + kFirstReadSlots;
  more_reads.RangeType = D3D12_DESCRIPTOR_RANGE_TYPE_SRV;
  more_reads.NumDescriptors = kMoreReadSlots;
  more_reads.BaseShaderRegister = kFirstReadSlots;

  D3D12_ROOT_PARAMETER tables[2] = {};
  tables[kRootTable].ParameterType = D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE;
  tables[kRootTable].DescriptorTable.NumDescriptorRanges = 3;
  tables[kRootTable].DescriptorTable.pDescriptorRanges = ranges;
  tables[kMoreReadsTable].ParameterType = D3D12_ROOT_PARAMETER_TYPE_DESCRIPTOR_TABLE;
  tables[kMoreReadsTable].DescriptorTable.NumDescriptorRanges = 1;
  tables[kMoreReadsTable].DescriptorTable.pDescriptorRanges = &more_reads;

  D3D12_ROOT_SIGNATURE_DESC desc = {};
  desc.NumParameters = 2;
  desc.pParameters = tables;

  // Version 1.0 makes no promise that data is static, which is right for views of scratch.
  ComPtr<ID3DBlob> blob;
  ComPtr<ID3DBlob> messages;
  RETURN_IF_ERROR(
      health.Check(D3D12SerializeRootSignature(&desc, D3D_ROOT_SIGNATURE_VERSION_1_0,
                                               blob.GetAddressOf(), messages.GetAddressOf()),
                   "D3D12SerializeRootSignature"));
  ComPtr<ID3D12RootSignature> root_signature;
  RETURN_IF_ERROR(health.Check(
      device->CreateRootSignature(0, blob->GetBufferPointer(), blob->GetBufferSize(),
                                  __uuidof(ID3D12RootSignature),
                                  reinterpret_cast<void**>(root_signature.GetAddressOf())),
      "CreateRootSignature"));
  return root_signature;
}

DescriptorHeap::DescriptorHeap(ComPtr<ID3D12Device> device, ComPtr<ID3D12DescriptorHeap> heap,
                               uint32_t tables)
    : device_(std::move(device)),
      heap_(std::move(heap)),
      cpu_start_(CpuStart(heap_.Get())),
      gpu_start_(GpuStart(heap_.Get())),
      stride_(device_->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV)),
      more_reads_start_(uint64_t{tables} * kTableSlots * stride_) {}

absl::StatusOr<std::unique_ptr<DescriptorHeap>> DescriptorHeap::Create(ComPtr<ID3D12Device> device,
                                                                       Health& health,
                                                                       uint32_t tables,
                                                                       uint32_t more_reads_tables) {
  const uint32_t descriptors = tables * kTableSlots + more_reads_tables * kMoreReadSlots;
  if (tables > kMaxHeapDescriptors / kTableSlots || descriptors > kMaxHeapDescriptors) {
    return absl::InvalidArgumentError(absl::StrCat("A heap of ", tables, " tables; the limit is ",
                                                   kMaxHeapDescriptors / kTableSlots, "."));
  }
  D3D12_DESCRIPTOR_HEAP_DESC desc = {};
  desc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
  desc.NumDescriptors = descriptors;
  desc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
  ComPtr<ID3D12DescriptorHeap> heap;
  RETURN_IF_ERROR(
      health.Check(device->CreateDescriptorHeap(&desc, __uuidof(ID3D12DescriptorHeap),
                                                reinterpret_cast<void**>(heap.GetAddressOf())),
                   "CreateDescriptorHeap"));
  return std::unique_ptr<DescriptorHeap>(
      new DescriptorHeap(std::move(device), std::move(heap), tables));
}

D3D12_CPU_DESCRIPTOR_HANDLE DescriptorHeap::SlotAt(uint64_t offset) const {
  D3D12_CPU_DESCRIPTOR_HANDLE slot = cpu_start_;
  slot.ptr += static_cast<decltype(slot.ptr)>(offset);
  return slot;
}

// Null descriptors: the table must not refer to destroyed memory through an absent view.
void DescriptorHeap::WriteReads(absl::Span<const ResourceView> reads,
                                D3D12_CPU_DESCRIPTOR_HANDLE& slot) {
  for (const ResourceView& view : reads) {
    const D3D12_SHADER_RESOURCE_VIEW_DESC desc = ReadDesc(view);
    device_->CreateShaderResourceView(view.element_count == 0 ? nullptr : view.resource, &desc,
                                      slot);
    slot.ptr += stride_;
  }
}

D3D12_GPU_DESCRIPTOR_HANDLE DescriptorHeap::WriteTable(
    uint32_t table, const ConstantsView& constants,
    const std::array<ResourceView, kReadSlots>& reads,
    const std::array<ResourceView, kWriteSlots>& writes) {
  const uint64_t start = uint64_t{table} * kTableSlots * stride_;
  D3D12_CPU_DESCRIPTOR_HANDLE slot = SlotAt(start);
  const D3D12_CONSTANT_BUFFER_VIEW_DESC constants_desc = {.BufferLocation = constants.address,
                                                          .SizeInBytes = constants.size_bytes};
  device_->CreateConstantBufferView(&constants_desc, slot);
  slot.ptr += stride_;
  WriteReads(absl::MakeConstSpan(reads).first(kFirstReadSlots), slot);
  for (const ResourceView& view : writes) {
    const D3D12_UNORDERED_ACCESS_VIEW_DESC desc = WriteDesc(view);
    device_->CreateUnorderedAccessView(view.element_count == 0 ? nullptr : view.resource, nullptr,
                                       &desc, slot);
    slot.ptr += stride_;
  }
  return {gpu_start_.ptr + start};
}

D3D12_GPU_DESCRIPTOR_HANDLE DescriptorHeap::WriteMoreReads(
    uint32_t table, const std::array<ResourceView, kReadSlots>& reads) {
  const uint64_t start = more_reads_start_ + uint64_t{table} * kMoreReadSlots * stride_;
  D3D12_CPU_DESCRIPTOR_HANDLE slot = SlotAt(start);
  WriteReads(absl::MakeConstSpan(reads).subspan(kFirstReadSlots), slot);
  return {gpu_start_.ptr + start};
}

}  // namespace opmill
