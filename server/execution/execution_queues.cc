#include "server/execution/execution_queues.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/execution/execution.h"
#include "server/execution/pace.h"

namespace opmill {
namespace {

// The device runs executions in order, and allocates scratch for each of them. With at most
// kMaxRunningLargeBytes of large ones, or one huge one, small ones wait for no more than that.
// kMaxRunningSmall fill several submissions.
constexpr uint64_t kMaxRunningLargeBytes = uint64_t{32} << 20;
constexpr uint32_t kMaxRunningSmall = 192;

// The limit for one caller while several use the device: two milliseconds of work on a processor. A
// run of another caller waits no longer than that, however much is queued here.
constexpr uint64_t kMaxRunningSmallBytesBesideOthers = uint64_t{16} << 20;

// What a caller may send in one round, before the others get their turns. It is no more than a
// large execution, and much more than a small one, so that several small ones share a submission.
constexpr uint64_t kSmallQuantum = uint64_t{256} << 10;
constexpr uint64_t kLargeQuantum = uint64_t{4} << 20;
// Added to the cost of each execution, which takes time even if it has few bytes.
constexpr uint64_t kBytesLikeARun = uint64_t{32} << 10;

// How long an execution without input keeps its memory when others need it. The first value is
// shorter than the time for which a begin waits on its stream, because everything behind the begin
// waits too.
constexpr absl::Duration kSilentPatience = absl::Milliseconds(100);
constexpr absl::Duration kUploadPatience = Pace::kPatience;
constexpr size_t kMostStalledAtOnce = 64;
// For slow uploads. Those that have waited longest for more input come first.
constexpr size_t kMostSearchedExecutions = 1024;

bool IsLarge(const QueuePlace& place) { return place.work_bytes >= kLargeBytes; }
bool IsHuge(const QueuePlace& place) { return place.work_bytes > kMaxRunningLargeBytes; }

const CallerAccount* CallerOf(const Execution& execution) {
  return execution.request().origin.account.get();
}

}  // namespace

ExecutionQueues::ExecutionQueues() : small_(kSmallQuantum), large_(kLargeQuantum) {}

QueuePlace& ExecutionQueues::PlaceOf(Execution& execution) { return execution.place_; }
const QueuePlace& ExecutionQueues::PlaceOf(const Execution& execution) { return execution.place_; }

void ExecutionQueues::Enter(const std::shared_ptr<Execution>& execution, absl::Time now) {
  QueuePlace& place = PlaceOf(*execution);
  place.queue = &silent_;
  place.position = silent_.insert(silent_.end(), execution);
  place.entered = now;
  place.since = now;
}

void ExecutionQueues::AwaitInput(Execution& execution, absl::Time now) {
  MoveTo(uploading_, execution, now);
}

void ExecutionQueues::AwaitOperator(Execution& execution, absl::Time now) {
  MoveTo(preparing_, execution, now);
}

void ExecutionQueues::AwaitDevice(Execution& execution, uint64_t work_bytes, absl::Time now,
                                  uint64_t run_bytes) {
  QueuePlace& place = PlaceOf(execution);
  if (place.queue == nullptr) return;
  now_ = std::max(now_, now);
  place.work_bytes = work_bytes;
  place.ready = IsLarge(place) ? &large_ : &small_;
  place.ready_position = place.ready->Push(CallerOf(execution), execution.request().priority,
                                           std::max(work_bytes, run_bytes) + kBytesLikeARun,
                                           std::move(*place.position));
  place.queue->erase(place.position);
  place.queue = nullptr;
}

void ExecutionQueues::MoveTo(Queue& queue, Execution& execution, absl::Time now) {
  QueuePlace& place = PlaceOf(execution);
  if (place.queue == nullptr) return;
  queue.splice(queue.end(), *place.queue, place.position);
  place.queue = &queue;
  place.since = now;
}

void ExecutionQueues::Remove(Execution& execution) {
  QueuePlace& place = PlaceOf(execution);
  if (place.ready != nullptr) std::exchange(place.ready, nullptr)->Remove(place.ready_position);
  if (place.queue == nullptr) return;
  place.queue->erase(place.position);
  place.queue = nullptr;
}

ExecutionQueues::Stalled ExecutionQueues::FindStalled(
    absl::Time now, const std::function<bool(const Execution&, Stall)>& may_end) const {
  Stalled stalled;
  const auto take = [&](const std::shared_ptr<Execution>& execution) {
    if (may_end(*execution, stalled.why)) stalled.executions.push_back(execution);
    return stalled.executions.size() < kMostStalledAtOnce;
  };
  const auto take_until = [&](const Queue& queue, absl::Time until) {
    for (const std::shared_ptr<Execution>& execution : queue) {
      if (PlaceOf(*execution).since > until || !take(execution)) break;
    }
  };
  take_until(silent_, now - kSilentPatience);
  if (stalled.executions.empty()) take_until(uploading_, now - kUploadPatience);
  if (!stalled.executions.empty()) return stalled;
  stalled.why = Stall::kSlowInput;
  size_t searched = 0;
  for (const std::shared_ptr<Execution>& execution : uploading_) {
    if (++searched > kMostSearchedExecutions) break;
    if (PlaceOf(*execution).entered <= now - kUploadPatience && !take(execution)) break;
  }
  return stalled;
}

ExecutionQueues::Use ExecutionQueues::UseOf(const CallerAccount* caller) const {
  const auto found = uses_.find(caller);
  return found == uses_.end() ? Use() : found->second;
}

bool ExecutionQueues::MaySendSmall(const CallerAccount* caller, const Execution& execution) const {
  const Use use = UseOf(caller);
  const size_t callers = uses_.size() + (uses_.contains(caller) ? 0 : 1);
  if (callers == 1 || use.small == 0) return true;
  return use.small < kMaxRunningSmall / callers &&
         use.small_bytes + PlaceOf(execution).work_bytes <= kMaxRunningSmallBytesBesideOthers;
}

bool ExecutionQueues::MaySendLarge(const CallerAccount* caller, const Execution& execution) const {
  const QueuePlace& place = PlaceOf(execution);
  const uint64_t own_bytes = UseOf(caller).large_bytes;
  if (IsHuge(place)) return own_bytes == 0 && running_huge_ == 0;
  return own_bytes + place.work_bytes <= kMaxRunningLargeBytes;
}

bool ExecutionQueues::HasRoomForLarge(const Execution& execution) const {
  const QueuePlace& place = PlaceOf(execution);
  return IsHuge(place) || running_large_bytes_ + place.work_bytes <= kMaxRunningLargeBytes;
}

std::shared_ptr<Execution> ExecutionQueues::NextForDevice() {
  ForgetUses();
  std::optional<std::shared_ptr<Execution>> next;
  if (running_small_ < kMaxRunningSmall && !small_.empty()) {
    next = small_.Take([this](const CallerAccount* caller, const auto& execution) {
      return MaySendSmall(caller, *execution);
    });
  }
  if (!next.has_value() && !large_.empty()) {
    next = large_.Take([this](const CallerAccount* caller,
                              const auto& execution) { return MaySendLarge(caller, *execution); },
                       [this](const auto& execution) { return HasRoomForLarge(*execution); });
  }
  if (!next.has_value()) return nullptr;
  CountRunning(**next);
  return *std::move(next);
}

void ExecutionQueues::TakeAlong(Execution& execution) {
  QueuePlace& place = PlaceOf(execution);
  if (place.ready == nullptr) return;
  place.ready->Remove(place.ready_position);
  CountRunning(execution);
}

void ExecutionQueues::CountRunning(Execution& execution) {
  QueuePlace& place = PlaceOf(execution);
  place.ready = nullptr;
  place.is_running = true;
  Use& use = uses_[CallerOf(execution)];
  use.last = now_;
  if (!IsLarge(place)) {
    ++running_small_;
    ++use.small;
    use.small_bytes += place.work_bytes;
  } else {
    use.large_bytes += place.work_bytes;
    if (IsHuge(place)) {
      ++running_huge_;
    } else {
      running_large_bytes_ += place.work_bytes;
    }
  }
}

void ExecutionQueues::RunEnded(Execution& execution) {
  QueuePlace& place = PlaceOf(execution);
  if (!std::exchange(place.is_running, false)) return;
  Use& use = uses_[CallerOf(execution)];
  if (!IsLarge(place)) {
    --running_small_;
    --use.small;
    use.small_bytes -= place.work_bytes;
  } else {
    use.large_bytes -= place.work_bytes;
    if (IsHuge(place)) {
      --running_huge_;
    } else {
      running_large_bytes_ -= place.work_bytes;
    }
  }
}

void ExecutionQueues::ForgetUses() {
  if (uses_.size() < 2 || now_ < next_forgetting_) return;
  next_forgetting_ = now_ + kUses / 8;
  std::erase_if(uses_, [this](const auto& caller_and_use) {
    const Use& use = caller_and_use.second;
    return use.small == 0 && use.large_bytes == 0 && now_ - use.last >= kUses;
  });
}

}  // namespace opmill
