// Submits runs to the device and calls back when they have ended. One thread takes the runs that
// are ready when a frame is free, records them into one command list and submits it. While the
// device is busy, it waits until they are worth a submission. Another thread waits for the fence
// and calls back in order.
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
#include "kernels/d3d12/queue/event.h"
#include "kernels/d3d12/queue/queued_run.h"
#include "kernels/d3d12/queue/recorder.h"

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
    uint32_t first_timestamp = 0;
    BufferSlice constants;
  };

  // A submission; without parts: abandoned runs; without a frame: runs that failed before their
  // submission.
  struct Batch {
    Frame* frame = nullptr;
    uint64_t fence_value = 0;
    Clock::time_point submitted_at;
    double expected_seconds = 0;
    std::vector<RunPart> parts;                          // kept alive until the fence
    std::vector<std::shared_ptr<QueuedRun>> ended_runs;  // whose callbacks follow, in this order

    bool is_cut() const { return parts.size() == 1 && !parts[0].is_whole(); }
  };

  Submission(ComPtr<ID3D12Device> device, std::shared_ptr<Health> health,
             ComPtr<ID3D12RootSignature> root_signature, std::shared_ptr<BufferPool> pool,
             Counters& counters, const SubmissionOptions& options)
      : device_(std::move(device)),
        health_(std::move(health)),
        root_signature_(std::move(root_signature)),
        pool_(std::move(pool)),
        counters_(counters),
        options_(options) {}
  absl::Status Initialize();
  absl::Status CreateTimestamps();

  // Called on the submitting thread.
  void SubmitLoop();
  Batch TakeAbandoned();
  Batch TakeBatch(bool device_is_idle, bool may_cut);
  void TakeRuns(size_t first, bool device_is_idle, bool may_cut, Batch& batch);
  absl::Status GiveMemory(QueuedRun& run);
  absl::Status Submit(Batch& batch);

  // Called on the completing thread.
  void CompleteLoop();
  void WaitForFence(uint64_t value);
  absl::Duration DeviceTime(const Frame& frame) const;
  void Measure(const Batch& batch, Clock::time_point now);
  void Complete(Batch& batch);

  const ComPtr<ID3D12Device> device_;
  const std::shared_ptr<Health> health_;
  const ComPtr<ID3D12RootSignature> root_signature_;
  const std::shared_ptr<BufferPool> pool_;
  Counters& counters_;
  const SubmissionOptions options_;

  ComPtr<ID3D12CommandQueue> queue_;
  ComPtr<ID3D12GraphicsCommandList> list_;
  ComPtr<ID3D12Fence> fence_;
  ComPtr<ID3D12QueryHeap> timestamps_;  // null if not supported by the queue, or not requested
  ComPtr<ID3D12Resource> timestamp_buffer_;
  const uint64_t* timestamp_values_ = nullptr;
  uint64_t timestamp_frequency_ = 0;
  std::unique_ptr<DescriptorHeap> heap_;
  BufferSlice zeros_;
  Event fence_event_;
  std::vector<Frame> frames_;
  uint64_t last_fence_value_ = 0;                      // of the submitting thread
  std::deque<std::shared_ptr<QueuedRun>> candidates_;  // of the same; the first may be in progress
  bool others_are_next_ = false;                       // of the same; before the run in progress
  Clock::time_point last_completion_;                  // of the completing thread

  absl::Mutex mutex_;
  std::deque<std::shared_ptr<QueuedRun>> queued_ ABSL_GUARDED_BY(mutex_);
  uint64_t queued_weight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Frame*> free_frames_ ABSL_GUARDED_BY(mutex_);
  std::deque<Batch> in_flight_ ABSL_GUARDED_BY(mutex_);
  uint32_t cut_batches_in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t completions_ ABSL_GUARDED_BY(mutex_) = 0;
  // No candidate can be submitted until a batch completes, because memory is exhausted or enough of
  // the run in progress has been submitted. In the latter case, runs that arrive later still can.
  bool is_blocked_ ABSL_GUARDED_BY(mutex_) = false;
  bool run_is_under_way_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool submitting_ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread submitting_thread_;
  std::thread completing_thread_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_SUBMISSION_H_
