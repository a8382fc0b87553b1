#include "kernels/d3d12/queue/timestamps.h"

#include "kernels/base/errors.h"

namespace opmill {

absl::StatusOr<std::unique_ptr<Timestamps>> Timestamps::Create(ID3D12Device* device,
                                                               ID3D12CommandQueue* queue,
                                                               Health& health, uint32_t count) {
  uint64_t frequency = 0;
  if (FAILED(queue->GetTimestampFrequency(&frequency)) || frequency == 0) return nullptr;
  D3D12_QUERY_HEAP_DESC heap_desc = {};
  heap_desc.Type = D3D12_QUERY_HEAP_TYPE_TIMESTAMP;
  heap_desc.Count = count;
  ComPtr<ID3D12QueryHeap> heap;
  if (FAILED(device->CreateQueryHeap(&heap_desc, __uuidof(ID3D12QueryHeap),
                                     reinterpret_cast<void**>(heap.GetAddressOf())))) {
    return nullptr;
  }
  std::unique_ptr<Timestamps> timestamps(new Timestamps(std::move(heap), count, frequency));

  D3D12_HEAP_PROPERTIES readback = {};
  readback.Type = D3D12_HEAP_TYPE_READBACK;
  D3D12_RESOURCE_DESC desc = {};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = count * sizeof(uint64_t);
  desc.Height = 1;
  desc.DepthOrArraySize = 1;
  desc.MipLevels = 1;
  desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  ComPtr<ID3D12Resource>& buffer = timestamps->buffer_;
  RETURN_IF_ERROR(health.Check(
      device->CreateCommittedResource(
          &readback, D3D12_HEAP_FLAG_NONE, &desc, D3D12_RESOURCE_STATE_COPY_DEST, nullptr,
          __uuidof(ID3D12Resource), reinterpret_cast<void**>(buffer.GetAddressOf())),
      "CreateCommittedResource"));
  void* values = nullptr;
  RETURN_IF_ERROR(health.Check(buffer->Map(0, nullptr, &values), "Map"));
  timestamps->values_ = static_cast<const uint64_t*>(values);
  return timestamps;
}

absl::Duration Timestamps::Between(uint32_t begin, uint32_t end) const {
  if (values_[end] <= values_[begin]) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(values_[end] - values_[begin]) /
                       static_cast<double>(frequency_));
}

}  // namespace opmill
