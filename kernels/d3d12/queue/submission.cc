#include "kernels/d3d12/queue/submission.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/adapter/adapters.h"

namespace opmill {
namespace {

// Dispatches of one submission; longer plans take several.
constexpr uint32_t kFrameTables = 1024;

// A submission costs the driver much whatever is in it: lavapipe some tens of microseconds of
// processor time, and threads that wake one another. So while the device works, small
// runs wait until it is done or as many have come as make another submission worth it; long ones do
// not wait. (At 64 in flight on a stream, 1.17 of the executions a second;
// docs/notes/transport.md.)
constexpr uint64_t kWorthwhileRuns = 32;
constexpr uint64_t kBytesLikeARun = uint64_t{32} << 10;

// What one submission takes of whole runs. Drivers give up on a submission after 2 s.
constexpr double kSubmissionSeconds = 0.1;

// What one takes of a run that does not fit into one: others wait for two of them, and so does the
// device when the run is abandoned. On lavapipe a submission costs 0.3 ms, so that cutting long
// work costs less than can be measured. It is half of what whole runs may take, because a part
// shares its submission with no other run, and on a busy host short runs are measured as long ones.
constexpr double kPartSeconds = 0.05;

// The same while a kernel of the part has not been measured. The groups of a plan's first kernel
// may do most of its work: those of KeepBest in top_k of one sequence take 7 times what all take on
// average.
constexpr double kFirstPartSeconds = 0.005;

// Of a run that is cut: one on the device, and one that it goes on with at once.
constexpr uint32_t kMaxCutBatches = 2;

uint64_t WeightOf(const QueuedRun& run) {
  uint64_t bytes = 0;
  for (const auto& input : run.inputs) bytes += input == nullptr ? 0 : input->size_bytes();
  return 1 + bytes / kBytesLikeARun;
}

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
    frames_[i].first_table = i * kFrameTables;
    frames_[i].first_timestamp = i * 2;
    ASSIGN_OR_RETURN(frames_[i].constants,
                     pool_->Allocate(Placement::kHostInput, ConstantBytes(kFrameTables)));
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
  ASSIGN_OR_RETURN(
      heap_, DescriptorHeap::Create(device_, *health_, options_.frames_in_flight * kFrameTables));
  ASSIGN_OR_RETURN(zeros_, pool_->Allocate(Placement::kHostInput, kZeroBytes));
  std::memset(zeros_.data(), 0, kZeroBytes);
  if (options_.measure_device_time) RETURN_IF_ERROR(CreateTimestamps());

  {
    absl::MutexLock lock(&mutex_);
    for (Frame& frame : frames_) free_frames_.push_back(&frame);
  }
  submitting_thread_ = std::thread([this] { SubmitLoop(); });
  completing_thread_ = std::thread([this] { CompleteLoop(); });
  return absl::OkStatus();
}

// A device without timestamps is as good; only one that is lost meanwhile is not.
absl::Status Submission::CreateTimestamps() {
  if (FAILED(queue_->GetTimestampFrequency(&timestamp_frequency_)) || timestamp_frequency_ == 0) {
    return absl::OkStatus();
  }
  D3D12_QUERY_HEAP_DESC heap = {};
  heap.Type = D3D12_QUERY_HEAP_TYPE_TIMESTAMP;
  heap.Count = options_.frames_in_flight * 2;
  ComPtr<ID3D12QueryHeap> timestamps;
  if (FAILED(device_->CreateQueryHeap(&heap, __uuidof(ID3D12QueryHeap),
                                      reinterpret_cast<void**>(timestamps.GetAddressOf())))) {
    return absl::OkStatus();
  }
  D3D12_HEAP_PROPERTIES readback = {};
  readback.Type = D3D12_HEAP_TYPE_READBACK;
  D3D12_RESOURCE_DESC desc = {};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = heap.Count * sizeof(uint64_t);
  desc.Height = 1;
  desc.DepthOrArraySize = 1;
  desc.MipLevels = 1;
  desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  RETURN_IF_ERROR(health_->Check(
      device_->CreateCommittedResource(
          &readback, D3D12_HEAP_FLAG_NONE, &desc, D3D12_RESOURCE_STATE_COPY_DEST, nullptr,
          __uuidof(ID3D12Resource), reinterpret_cast<void**>(timestamp_buffer_.GetAddressOf())),
      "CreateCommittedResource"));
  void* values = nullptr;
  RETURN_IF_ERROR(health_->Check(timestamp_buffer_->Map(0, nullptr, &values), "Map"));
  timestamp_values_ = static_cast<const uint64_t*>(values);
  timestamps_ = std::move(timestamps);
  return absl::OkStatus();
}

bool Submission::Enqueue(const std::shared_ptr<QueuedRun>& run) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return false;
  run->queued_at = Clock::now();
  queued_.push_back(run);
  queued_weight_ += WeightOf(*run);
  if (run_is_under_way_) is_blocked_ = false;
  return true;
}

void Submission::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (submitting_thread_.joinable()) submitting_thread_.join();
  if (completing_thread_.joinable()) completing_thread_.join();
}

void Submission::SubmitLoop() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool device_works = free_frames_.size() < frames_.size();
    const bool has_runs =
        !candidates_.empty() || queued_weight_ >= (device_works ? kWorthwhileRuns : 1);
    return stopping_ || (has_runs && !free_frames_.empty() && !is_blocked_);
  };
  for (;;) {
    Frame* frame = nullptr;
    bool device_is_idle = false;
    bool may_cut = false;
    uint64_t completions = 0;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      candidates_.insert(candidates_.end(), queued_.begin(), queued_.end());
      queued_.clear();
      queued_weight_ = 0;
      if (stopping_) break;
      frame = free_frames_.back();
      free_frames_.pop_back();
      device_is_idle = free_frames_.size() + 1 == frames_.size();
      may_cut = cut_batches_in_flight_ < kMaxCutBatches;
      completions = completions_;
    }
    Batch batch = TakeAbandoned();
    if (!batch.ended_runs.empty()) {
      batch.frame = frame;
    } else {
      batch = TakeBatch(device_is_idle, may_cut);
    }
    const bool is_nothing = batch.parts.empty() && batch.ended_runs.empty();
    if (!batch.parts.empty()) {
      batch.frame = frame;
      if (absl::Status status = Submit(batch); !status.ok()) {
        batch.frame = nullptr;
        batch.ended_runs.clear();
        for (const RunPart& part : batch.parts) {
          part.run->status = status;
          batch.ended_runs.push_back(part.run);
          if (!part.is_last()) candidates_.pop_front();
        }
      }
    }
    absl::MutexLock lock(&mutex_);
    if (batch.frame == nullptr) free_frames_.push_back(frame);
    run_is_under_way_ = !candidates_.empty() && candidates_.front()->is_under_way();
    if (is_nothing) {
      // What may change that may have come since; then there is nothing to wait for.
      is_blocked_ = completions == completions_ && !(run_is_under_way_ && !queued_.empty());
    } else {
      if (batch.frame != nullptr && batch.is_cut()) ++cut_batches_in_flight_;
      in_flight_.push_back(std::move(batch));
    }
  }

  Batch refused;
  for (std::shared_ptr<QueuedRun>& run : candidates_) {
    if (run->status.ok()) run->status = absl::UnavailableError("The device is closing.");
    refused.ended_runs.push_back(std::move(run));
  }
  candidates_.clear();
  absl::MutexLock lock(&mutex_);
  in_flight_.push_back(std::move(refused));
  submitting_ended_ = true;
}

// Their batch ends when their parts in flight have, and takes a frame until then: the device does
// not count as idle, and refuses no run for want of memory, before it has given back theirs.
Submission::Batch Submission::TakeAbandoned() {
  Batch batch;
  std::erase_if(candidates_, [&batch](const std::shared_ptr<QueuedRun>& run) {
    if (!run->abandoned.stop_requested()) return false;
    run->status.Update(absl::CancelledError("The run was abandoned."));
    batch.ended_runs.push_back(run);
    return true;
  });
  return batch;
}

// Runs as they come; while a long one is under way, the others and parts of that one in turn.
// Nothing at all when what comes first must wait.
Submission::Batch Submission::TakeBatch(bool device_is_idle, bool may_cut) {
  Batch batch;
  const bool is_under_way = !candidates_.empty() && candidates_.front()->is_under_way();
  if (is_under_way && (others_are_next_ || !may_cut)) {
    TakeRuns(1, device_is_idle, may_cut, batch);
    others_are_next_ = false;
    if (!batch.parts.empty() || !batch.ended_runs.empty() || !may_cut) return batch;
  }
  TakeRuns(0, device_is_idle, may_cut, batch);
  others_are_next_ = batch.is_cut();
  return batch;
}

// Of the candidates from `first` on whole runs as long as they fit, or a part of the very first
// that is too long for any submission.
void Submission::TakeRuns(size_t first, bool device_is_idle, bool may_cut, Batch& batch) {
  SubmissionRoom room = {.dispatches = kFrameTables, .seconds = kSubmissionSeconds};
  const auto take = [&] { candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(first)); };
  while (candidates_.size() > first && batch.parts.size() < options_.max_batch_runs) {
    const std::shared_ptr<QueuedRun> run = candidates_[first];
    absl::Status status = run->status;
    if (status.ok() && health_->lost()) status = DeviceLostError();
    double seconds = room.seconds;
    SubmissionRoom rest = room;
    RunPart part = {.run = run, .begin = run->next};
    if (status.ok()) {
      const OperatorPlan& plan = run->compiled->plan();
      const Pace& pace = run->compiled->pace();
      part.end = Advance(plan, pace, part.begin, rest);
      if (!part.is_last()) {
        if (first > 0 || !may_cut || !batch.parts.empty()) break;
        const bool is_measured = pace.IsMeasured(plan, part.begin, part.end);
        seconds = is_measured ? kPartSeconds : kFirstPartSeconds;
        rest = {.dispatches = room.dispatches, .seconds = seconds};
        part.end = Advance(plan, pace, part.begin, rest);
      }
      status = GiveMemory(*run);
    }
    const bool is_alone = device_is_idle && first == 0 && batch.parts.empty();
    if (absl::IsResourceExhausted(status) && run->status.ok() && !is_alone) break;
    if (!status.ok()) {
      run->status = std::move(status);
      batch.ended_runs.push_back(run);
      take();
      continue;
    }
    batch.expected_seconds += seconds - rest.seconds;
    room = rest;
    run->next = part.end;
    batch.parts.push_back(part);
    if (!part.is_last()) break;
    batch.ended_runs.push_back(run);
    take();
  }
}

absl::Status Submission::GiveMemory(QueuedRun& run) {
  if (run.has_memory) return absl::OkStatus();
  const OperatorPlan& plan = run.compiled->plan();
  BufferSlice scratch;
  std::vector<BufferSlice> inputs;
  std::vector<BufferSlice> outputs;
  if (plan.scratch_bytes > 0) {
    ASSIGN_OR_RETURN(scratch, pool_->Allocate(Placement::kDeviceOutput, plan.scratch_bytes));
  }
  if (!options_.unified_memory) {
    for (const uint64_t size_bytes : plan.input_bytes) {
      ASSIGN_OR_RETURN(BufferSlice input, pool_->Allocate(Placement::kDeviceInput, size_bytes));
      inputs.push_back(std::move(input));
    }
    for (const uint64_t size_bytes : plan.output_bytes) {
      ASSIGN_OR_RETURN(BufferSlice output, pool_->Allocate(Placement::kDeviceOutput, size_bytes));
      outputs.push_back(std::move(output));
    }
  }
  run.scratch = std::move(scratch);
  run.device_inputs = std::move(inputs);
  run.device_outputs = std::move(outputs);
  run.has_memory = true;
  return absl::OkStatus();
}

absl::Status Submission::Submit(Batch& batch) {
  Frame& frame = *batch.frame;
  RETURN_IF_ERROR(health_->Check(frame.allocator->Reset(), "Reset"));
  RETURN_IF_ERROR(health_->Check(list_->Reset(frame.allocator.Get(), nullptr), "Reset"));
  if (timestamps_) {
    list_->EndQuery(timestamps_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, frame.first_timestamp);
  }
  counters_.dispatches += Recorder(list_.Get(), root_signature_.Get(),
                                   {.heap = *heap_,
                                    .first_table = frame.first_table,
                                    .constants = frame.constants,
                                    .zeros = zeros_})
                              .Record(batch.parts);
  if (timestamps_) {
    list_->EndQuery(timestamps_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, frame.first_timestamp + 1);
    list_->ResolveQueryData(timestamps_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, frame.first_timestamp, 2,
                            timestamp_buffer_.Get(), frame.first_timestamp * sizeof(uint64_t));
  }
  RETURN_IF_ERROR(health_->Check(list_->Close(), "Close"));

  const Clock::time_point now = Clock::now();
  for (const RunPart& part : batch.parts) {
    QueuedRun& run = *part.run;
    if (part.is_first()) {
      run.submitted_at = now;
      run.statistics.queued = absl::FromChrono(now - run.queued_at);
    }
    run.statistics.batch_size = static_cast<uint32_t>(batch.parts.size());
  }
  ID3D12CommandList* lists[] = {list_.Get()};
  batch.submitted_at = now;
  queue_->ExecuteCommandLists(1, lists);
  batch.fence_value = ++last_fence_value_;
  counters_.submissions.fetch_add(1, std::memory_order_relaxed);
  // From here on the device may be at work with the batch's memory. A signal fails only on a lost
  // device, which the completing thread finds out about.
  static_cast<void>(health_->Check(queue_->Signal(fence_.Get(), batch.fence_value), "Signal"));
  return absl::OkStatus();
}

void Submission::CompleteLoop() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return submitting_ended_ || !in_flight_.empty();
  };
  for (;;) {
    Batch batch;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (in_flight_.empty()) return;
      batch = std::move(in_flight_.front());
      in_flight_.pop_front();
    }
    Complete(batch);
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
  if (!timestamps_) return absl::ZeroDuration();
  const uint64_t begin = timestamp_values_[frame.first_timestamp];
  const uint64_t end = timestamp_values_[frame.first_timestamp + 1];
  return end <= begin ? absl::ZeroDuration()
                      : absl::Seconds(static_cast<double>(end - begin) /
                                      static_cast<double>(timestamp_frequency_));
}

// From when the device could begin it to when this thread saw it end.
void Submission::Measure(const Batch& batch, Clock::time_point now) {
  const Clock::duration taken = now - std::max(batch.submitted_at, last_completion_);
  last_completion_ = now;
  if (health_->lost() || batch.parts.empty()) return;
  const int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
  std::atomic<int64_t>& longest = counters_.longest_submission_nanoseconds;
  longest = std::max(longest.load(std::memory_order_relaxed), nanoseconds);

  const std::shared_ptr<const D3D12CompiledOperator>& compiled = batch.parts[0].run->compiled;
  for (const RunPart& part : batch.parts) {
    if (part.run->compiled != compiled) return;  // who knows which of them took the time
  }
  if (batch.expected_seconds <= 0) return;
  const RunPart& part = batch.parts.back();  // whole, or the only one
  compiled->pace().Learn(compiled->plan(), part.begin, part.end,
                         static_cast<double>(nanoseconds) * 1e-9 / batch.expected_seconds);
}

void Submission::Complete(Batch& batch) {
  if (batch.frame != nullptr) {
    WaitForFence(batch.fence_value);
    health_->IsRemoved();
    const absl::Duration device_time = DeviceTime(*batch.frame);
    const Clock::time_point now = Clock::now();
    Measure(batch, now);
    for (const RunPart& part : batch.parts) {
      QueuedRun& run = *part.run;
      run.statistics.device += device_time;
      if (part.is_last()) run.statistics.executed = absl::FromChrono(now - run.submitted_at);
    }
    for (const std::shared_ptr<QueuedRun>& run : batch.ended_runs) {
      run->scratch = {};
      run->device_inputs.clear();
      run->device_outputs.clear();
    }
    absl::MutexLock lock(&mutex_);
    free_frames_.push_back(batch.frame);
    ++completions_;
    is_blocked_ = false;
    if (batch.is_cut()) --cut_batches_in_flight_;
  }
  batch.parts.clear();
  for (std::shared_ptr<QueuedRun>& run : batch.ended_runs) {
    if (run->status.ok() && health_->lost()) run->status = DeviceLostError();
    if (run->status.ok()) {
      counters_.runs.fetch_add(1, std::memory_order_relaxed);
      run->done(run->statistics);
    } else {
      run->done(run->status);
    }
    run.reset();
  }
}

}  // namespace opmill
