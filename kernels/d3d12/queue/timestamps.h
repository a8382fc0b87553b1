// Times that the device takes between commands of a list, by the clock of its queue.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_TIMESTAMPS_H_
#define OPMILL_KERNELS_D3D12_QUEUE_TIMESTAMPS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/platform.h"

namespace opmill {

// A fixed number of timestamps, and memory that the host reads. The device must be done with it
// when it is destroyed.
class Timestamps {
 public:
  // Null if the queue has no clock, or no memory for the timestamps: a run does not need them.
  static absl::StatusOr<std::unique_ptr<Timestamps>> Create(ID3D12Device* device,
                                                            ID3D12CommandQueue* queue,
                                                            Health& health, uint32_t count);

  // The device takes the timestamp when it is done with what the list has before it.
  void Record(ID3D12GraphicsCommandList* list, uint32_t index) const {
    list->EndQuery(heap_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, index);
  }
  // Makes these timestamps readable when the list has been executed. It must have recorded them.
  void Resolve(ID3D12GraphicsCommandList* list, uint32_t first, uint32_t count) const {
    list->ResolveQueryData(heap_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, first, count, buffer_.Get(),
                           first * sizeof(uint64_t));
  }

  uint32_t count() const { return count_; }
  // Zero if the clock has been set back meanwhile.
  absl::Duration Between(uint32_t begin, uint32_t end) const;

 private:
  Timestamps(ComPtr<ID3D12QueryHeap> heap, uint32_t count, uint64_t frequency)
      : heap_(std::move(heap)), count_(count), frequency_(frequency) {}

  const ComPtr<ID3D12QueryHeap> heap_;
  const uint32_t count_;
  const uint64_t frequency_;  // in Hz
  ComPtr<ID3D12Resource> buffer_;
  const uint64_t* values_ = nullptr;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_TIMESTAMPS_H_
