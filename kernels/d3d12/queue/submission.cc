#include "kernels/d3d12/queue/submission.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/adapter/adapters.h"

namespace opmill {
namespace {

// How often a wait asks whether the device is still there: not every driver signals its fences when
// it is lost.
constexpr absl::Duration kLossPollInterval = absl::Milliseconds(250);

}  // namespace

absl::StatusOr<std::unique_ptr<Submission>> Submission::Create(
    ComPtr<ID3D12Device> device, std::shared_ptr<Health> health,
    ComPtr<ID3D12RootSignature> root_signature, std::shared_ptr<BufferPool> pool,
    Counters& counters, const SubmissionOptions& options) {
  std::unique_ptr<Submission> submission(new Submission(std::move(device), std::move(health),
                                                        std::move(root_signature), std::move(pool),
                                                        counters, options));
  RETURN_IF_ERROR(submission->Initialize());
  return submission;
}

absl::Status Submission::Initialize() {
  D3D12_COMMAND_QUEUE_DESC queue = {};
  queue.Type = D3D12_COMMAND_LIST_TYPE_COMPUTE;
  queue.Flags = D3D12_COMMAND_QUEUE_FLAG_DISABLE_GPU_TIMEOUT;
  const auto create_queue = [&] {
    return device_->CreateCommandQueue(&queue, __uuidof(ID3D12CommandQueue),
                                       reinterpret_cast<void**>(queue_.ReleaseAndGetAddressOf()));
  };
  HRESULT result = create_queue();
  if (FAILED(result)) {  // not every user may have a queue without a timeout
    queue.Flags = D3D12_COMMAND_QUEUE_FLAG_NONE;
    result = create_queue();
  }
  RETURN_IF_ERROR(health_->Check(result, "CreateCommandQueue"));
  RETURN_IF_ERROR(
      health_->Check(device_->CreateFence(0, D3D12_FENCE_FLAG_NONE, __uuidof(ID3D12Fence),
                                          reinterpret_cast<void**>(fence_.GetAddressOf())),
                     "CreateFence"));

  frames_.resize(options_.frames_in_flight);
  for (uint32_t i = 0; i < options_.frames_in_flight; ++i) {
    frames_[i].first_table = i * kMaxBatchDispatches;
    frames_[i].first_more_reads = i * kMaxBatchMoreReads;
    frames_[i].first_timestamp = i * 2;
    ASSIGN_OR_RETURN(frames_[i].constants,
                     pool_->Allocate(Placement::kHostInput, ConstantBytes(kMaxBatchDispatches)));
    RETURN_IF_ERROR(
        health_->Check(device_->CreateCommandAllocator(
                           D3D12_COMMAND_LIST_TYPE_COMPUTE, __uuidof(ID3D12CommandAllocator),
                           reinterpret_cast<void**>(frames_[i].allocator.GetAddressOf())),
                       "CreateCommandAllocator"));
  }
  RETURN_IF_ERROR(health_->Check(
      device_->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_COMPUTE, frames_[0].allocator.Get(),
                                 nullptr, __uuidof(ID3D12GraphicsCommandList),
                                 reinterpret_cast<void**>(list_.GetAddressOf())),
      "CreateCommandList"));
  RETURN_IF_ERROR(health_->Check(list_->Close(), "Close"));
  ASSIGN_OR_RETURN(heap_, DescriptorHeap::Create(device_, *health_,
                                                 options_.frames_in_flight * kMaxBatchDispatches,
                                                 options_.frames_in_flight * kMaxBatchMoreReads));
  ASSIGN_OR_RETURN(zeros_,
                   DeviceConstants::Create(*pool_, Placement::kDeviceConstants, kZeroBytes));
  std::memset(zeros_.data(), 0, kZeroBytes);
  if (options_.measure_device_time) {
    ASSIGN_OR_RETURN(timestamps_, Timestamps::Create(device_.Get(), queue_.Get(), *health_,
                                                     options_.frames_in_flight * 2));
  }

  {
    absl::MutexLock lock(&mutex_);
    for (Frame& frame : frames_) free_frames_.push_back(&frame);
  }
  submitting_thread_ = std::thread([this] { SubmitLoop(); });
  completing_thread_ = std::thread([this] { CompleteLoop(); });
  return absl::OkStatus();
}

bool Submission::Enqueue(const std::shared_ptr<QueuedRun>& run) {
  run->input_bytes = 0;
  if (run->compiled != nullptr) {
    run->plan = &run->compiled->plan();
    run->pace = &run->compiled->pace();
    for (const uint64_t size_bytes : run->plan->input_bytes) run->input_bytes += size_bytes;
    run->has_memory = options_.unified_memory && run->plan->scratch_bytes == 0;
  }
  absl::MutexLock lock(&mutex_);
  if (stopping_) return false;
  run->queued_at = Clock::now();
  picker_.OnQueued(run);
  return true;
}

void Submission::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    picker_.OnStop();
  }
  if (submitting_thread_.joinable()) submitting_thread_.join();
  if (completing_thread_.joinable()) completing_thread_.join();
}

void Submission::SubmitLoop() {
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return picker_.is_due(); };
  for (bool is_last = false; !is_last;) {
    std::shared_ptr<PlannedRun> needs_memory;
    InFlight next;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&is_due));
      BatchPicker::Decision decision =
          picker_.Pick(health_->lost() ? DeviceLostError() : absl::OkStatus());
      is_last = picker_.is_closed();
      needs_memory = std::move(decision.needs_memory);
      next.batch = std::move(decision.batch);
      if (next.batch.has_frame) {
        next.frame = free_frames_.back();
        free_frames_.pop_back();
      }
    }
    if (needs_memory != nullptr) {
      absl::Status status = GiveMemory(RunOf(*needs_memory));
      absl::MutexLock lock(&mutex_);
      picker_.OnMemory(std::move(status));
      continue;
    }
    const absl::Status status = next.batch.parts.empty() ? absl::OkStatus() : Submit(next);
    absl::MutexLock lock(&mutex_);
    if (!status.ok()) {
      picker_.OnNotSubmitted(status, next.batch);
      free_frames_.push_back(std::exchange(next.frame, nullptr));
    }
    if (!next.batch.is_empty()) in_flight_.push_back(std::move(next));
    submitting_ended_ = is_last;
  }
}

absl::Status Submission::GiveMemory(QueuedRun& run) {
  const OperatorPlan& plan = *run.plan;
  const auto allocate = [&]() -> absl::Status {
    if (plan.scratch_bytes > 0) {
      ASSIGN_OR_RETURN(run.scratch, pool_->Allocate(Placement::kScratch, plan.scratch_bytes));
    }
    if (options_.unified_memory) return absl::OkStatus();
    RETURN_IF_ERROR(GiveCopies(Placement::kDeviceInput, plan.input_bytes, run.inputs));
    return GiveCopies(Placement::kDeviceOutput, plan.output_bytes, run.outputs);
  };
  absl::Status status = allocate();
  if (!status.ok()) run.ReleaseMemory();  // it may wait for more
  return status;
}

absl::Status Submission::GiveCopies(Placement placement, const std::vector<uint64_t>& sizes,
                                    std::vector<BoundTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].buffer->residency() == Residency::kDevice) continue;
    ASSIGN_OR_RETURN(tensors[i].copy, pool_->Allocate(placement, sizes[i]));
  }
  return absl::OkStatus();
}

absl::Status Submission::MeasureSteps(InFlight& in_flight) {
  const RunPart& part = in_flight.batch.parts[0];
  if (RunOf(part).profile == nullptr) return absl::OkStatus();
  in_flight.steps = StepNumbersOf(part);
  if (in_flight.steps.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(in_flight.step_timestamps,
                   Timestamps::Create(device_.Get(), queue_.Get(), *health_,
                                      static_cast<uint32_t>(in_flight.steps.size() + 1)));
  return absl::OkStatus();
}

absl::Status Submission::Submit(InFlight& in_flight) {
  const Batch& batch = in_flight.batch;
  Frame& frame = *in_flight.frame;
  RETURN_IF_ERROR(MeasureSteps(in_flight));
  RETURN_IF_ERROR(health_->Check(frame.allocator->Reset(), "Reset"));
  RETURN_IF_ERROR(health_->Check(list_->Reset(frame.allocator.Get(), nullptr), "Reset"));
  Recorder recorder(list_.Get(), root_signature_.Get(),
                    {.heap = *heap_,
                     .first_table = frame.first_table,
                     .first_more_reads = frame.first_more_reads,
                     .constants = frame.constants,
                     .zeros = zeros_,
                     .timestamps = timestamps_.get(),
                     .first_timestamp = frame.first_timestamp,
                     .step_timestamps = in_flight.step_timestamps.get()});
  counters_.dispatches += recorder.Record(batch.parts);
  counters_.barriers += recorder.barrier_calls();
  counters_.timestamps += recorder.timestamps();
  if (timestamps_ != nullptr) timestamps_->Resolve(list_.Get(), frame.first_timestamp, 2);
  if (in_flight.step_timestamps != nullptr) {
    in_flight.step_timestamps->Resolve(list_.Get(), 0, in_flight.step_timestamps->count());
  }
  RETURN_IF_ERROR(health_->Check(list_->Close(), "Close"));

  const Clock::time_point now = Clock::now();
  for (const RunPart& part : batch.parts) {
    QueuedRun& run = RunOf(part);
    if (part.is_first()) {
      run.submitted_at = now;
      run.statistics.queued = absl::FromChrono(now - run.queued_at);
    }
    run.statistics.batch_size = static_cast<uint32_t>(batch.parts.size());
  }
  ID3D12CommandList* lists[] = {list_.Get()};
  in_flight.submitted_at = now;
  queue_->ExecuteCommandLists(1, lists);
  in_flight.fence_value = ++last_fence_value_;
  counters_.submissions.fetch_add(1, std::memory_order_relaxed);
  in_flight.copied_constants = recorder.copied_constants();
  for (const DeviceConstants* copied : in_flight.copied_constants) copied->SetCopied();
  // From here on the device may be at work with the batch's memory. A signal fails only on a lost
  // device, which the completing thread finds out about.
  static_cast<void>(health_->Check(queue_->Signal(fence_.Get(), in_flight.fence_value), "Signal"));
  return absl::OkStatus();
}

void Submission::CompleteLoop() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return submitting_ended_ || !in_flight_.empty();
  };
  for (;;) {
    InFlight next;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (in_flight_.empty()) return;
      next = std::move(in_flight_.front());
      in_flight_.pop_front();
    }
    Complete(next);
  }
}

void Submission::WaitForFence(uint64_t value) {
  if (fence_->GetCompletedValue() >= value) return;
  static_cast<void>(health_->Check(fence_->SetEventOnCompletion(value, fence_event_.handle()),
                                   "SetEventOnCompletion"));
  while (fence_->GetCompletedValue() < value) {
    if (health_->lost() && health_->IsRemoved()) return;
    if (fence_event_.Wait(kLossPollInterval)) continue;
    if (HasSilentlyLostDevice(queue_.Get())) health_->MarkRemoved();
    if (health_->IsRemoved()) return;
  }
}

absl::Duration Submission::DeviceTime(const Frame& frame) const {
  if (timestamps_ == nullptr) return absl::ZeroDuration();
  return timestamps_->Between(frame.first_timestamp, frame.first_timestamp + 1);
}

void Submission::TakeStepTimes(const InFlight& in_flight) {
  if (in_flight.step_timestamps == nullptr || health_->lost()) return;
  RunProfile& profile = *RunOf(in_flight.batch.parts[0]).profile;
  profile.times.resize(profile.report.steps.size());
  for (uint32_t i = 0; i < in_flight.steps.size(); ++i) {
    profile.times[in_flight.steps[i]] += in_flight.step_timestamps->Between(i, i + 1);
  }
}

// From when the device could begin it to when this thread saw it end.
void Submission::Measure(const InFlight& in_flight, Clock::time_point now) {
  const Batch& batch = in_flight.batch;
  const Clock::duration taken = now - std::max(in_flight.submitted_at, last_completion_);
  last_completion_ = now;
  if (health_->lost() || batch.parts.empty()) return;
  const int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
  std::atomic<int64_t>& longest = counters_.longest_submission_nanoseconds;
  longest = std::max(longest.load(std::memory_order_relaxed), nanoseconds);

  const D3D12CompiledProgram& compiled = *RunOf(batch.parts[0]).compiled;
  for (const RunPart& part : batch.parts) {
    if (RunOf(part).compiled.get() != &compiled) return;  // who knows which of them took the time
  }
  // What is expected now: another part of the run may have been measured since it was submitted.
  const RunPart& part = batch.parts.back();  // whole, or the only one
  // A measured run is slower, so it teaches only if one of the kernels has not been measured yet.
  if (in_flight.step_timestamps != nullptr &&
      compiled.pace().IsMeasured(compiled.plan(), part.begin, part.end)) {
    return;
  }
  const double expected = compiled.pace().Seconds(compiled.plan(), part.begin, part.end) *
                          static_cast<double>(batch.parts.size());
  if (expected <= 0) return;
  compiled.pace().Learn(compiled.plan(), part.begin, part.end,
                        static_cast<double>(nanoseconds) * 1e-9 / expected);
}

void Submission::Complete(InFlight& in_flight) {
  Batch& batch = in_flight.batch;
  if (in_flight.frame != nullptr) {
    WaitForFence(in_flight.fence_value);
    health_->IsRemoved();
    const absl::Duration device_time = DeviceTime(*in_flight.frame);
    TakeStepTimes(in_flight);
    const Clock::time_point now = Clock::now();
    Measure(in_flight, now);
    for (const RunPart& part : batch.parts) {
      QueuedRun& run = RunOf(part);
      run.statistics.device += device_time;
      if (part.is_last()) run.statistics.executed = absl::FromChrono(now - run.submitted_at);
    }
    for (const std::shared_ptr<PlannedRun>& ended : batch.ended_runs) {
      RunOf(*ended).ReleaseMemory();
    }
    for (const DeviceConstants* const copied : in_flight.copied_constants) copied->ReleaseSource();
    absl::MutexLock lock(&mutex_);
    free_frames_.push_back(in_flight.frame);
    picker_.OnCompleted(batch);
  }
  batch.parts.clear();
  for (std::shared_ptr<PlannedRun>& ended : batch.ended_runs) {
    QueuedRun& run = RunOf(*ended);
    if (run.status.ok() && health_->lost()) run.status = DeviceLostError();
    if (run.status.ok()) {
      counters_.runs.fetch_add(1, std::memory_order_relaxed);
      run.done(run.statistics);
    } else {
      run.done(run.status);
    }
    ended.reset();
  }
}

}  // namespace opmill
