// Submits runs to the device and calls back when they have ended. One thread carries out what a
// BatchPicker decides: it records a batch of runs into one command list and submits it. Another
// thread waits for the fence and calls back in order.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_SUBMISSION_H_
#define OPMILL_KERNELS_D3D12_QUEUE_SUBMISSION_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kernels/d3d12/counters.h"
#include "kernels/d3d12/health.h"
#include "kernels/d3d12/memory/buffer_pool.h"
#include "kernels/d3d12/memory/descriptor_heap.h"
#include "kernels/d3d12/platform.h"
#include "kernels/d3d12/queue/batch_picker.h"
#include "kernels/d3d12/queue/event.h"
#include "kernels/d3d12/queue/queued_run.h"
#include "kernels/d3d12/queue/recorder.h"
#include "kernels/d3d12/queue/timestamps.h"

namespace opmill {

struct SubmissionOptions {
  bool unified_memory = true;
  uint32_t frames_in_flight = 3;
  uint32_t max_batch_runs = 64;
  bool measure_device_time = true;
};

class Submission {
 public:
  // `counters` must outlive it.
  static absl::StatusOr<std::unique_ptr<Submission>> Create(
      ComPtr<ID3D12Device> device, std::shared_ptr<Health> health,
      ComPtr<ID3D12RootSignature> root_signature, std::shared_ptr<BufferPool> pool,
      Counters& counters, const SubmissionOptions& options);
  ~Submission() { Stop(); }

  // Queues the run; its callback is called even if it has already failed. Returns false, without
  // touching the run, after Stop.
  bool Enqueue(const std::shared_ptr<QueuedRun>& run);

  // Waits for the work that the device has begun, and fails the rest. Must not be called from a
  // callback.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;

  // The resources of one submission in flight.
  struct Frame {
    ComPtr<ID3D12CommandAllocator> allocator;
    uint32_t first_table = 0;
    uint32_t first_more_reads = 0;
    uint32_t first_timestamp = 0;
    BufferSlice constants;
  };

  // A batch on its way, which keeps its runs alive until the fence.
  struct InFlight {
    Batch batch;
    Frame* frame = nullptr;
    uint64_t fence_value = 0;                              // 0: nothing was submitted
    std::vector<const DeviceConstants*> copied_constants;  // of its programs
    std::vector<uint32_t> steps;                           // that are measured
    std::unique_ptr<Timestamps> step_timestamps;  // around them; null: they are not measured
    Clock::time_point submitted_at;
  };

  Submission(ComPtr<ID3D12Device> device, std::shared_ptr<Health> health,
             ComPtr<ID3D12RootSignature> root_signature, std::shared_ptr<BufferPool> pool,
             Counters& counters, const SubmissionOptions& options)
      : device_(std::move(device)),
        health_(std::move(health)),
        root_signature_(std::move(root_signature)),
        pool_(std::move(pool)),
        counters_(counters),
        options_(options),
        picker_(options.frames_in_flight, options.max_batch_runs) {}
  absl::Status Initialize();

  // Called on the submitting thread.
  void SubmitLoop();
  absl::Status GiveMemory(QueuedRun& run);
  // Copies in the device's memory of those tensors that are not there.
  absl::Status GiveCopies(Placement placement, const std::vector<uint64_t>& sizes,
                          std::vector<BoundTensor>& tensors);
  // If the batch is of a run whose steps are measured.
  absl::Status MeasureSteps(InFlight& in_flight);
  absl::Status Submit(InFlight& in_flight);

  // Called on the completing thread.
  void CompleteLoop();
  void WaitForFence(uint64_t value);
  absl::Duration DeviceTime(const Frame& frame) const;
  void TakeStepTimes(const InFlight& in_flight);
  void Measure(const InFlight& in_flight, Clock::time_point now);
  void Complete(InFlight& in_flight);

  const ComPtr<ID3D12Device> device_;
  const std::shared_ptr<Health> health_;
  const ComPtr<ID3D12RootSignature> root_signature_;
  const std::shared_ptr<BufferPool> pool_;
  Counters& counters_;
  const SubmissionOptions options_;

  ComPtr<ID3D12CommandQueue> queue_;
  ComPtr<ID3D12GraphicsCommandList> list_;
  ComPtr<ID3D12Fence> fence_;
  std::unique_ptr<Timestamps> timestamps_;  // null if not supported, or not requested
  std::unique_ptr<DescriptorHeap> heap_;
  DeviceConstants zeros_;
  Event fence_event_;
  std::vector<Frame> frames_;
  uint64_t last_fence_value_ = 0;      // of the submitting thread
  Clock::time_point last_completion_;  // of the completing thread

  absl::Mutex mutex_;
  BatchPicker picker_ ABSL_GUARDED_BY(mutex_);
  std::vector<Frame*> free_frames_ ABSL_GUARDED_BY(mutex_);
  std::deque<InFlight> in_flight_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool submitting_ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread submitting_thread_;
  std::thread completing_thread_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_SUBMISSION_H_
