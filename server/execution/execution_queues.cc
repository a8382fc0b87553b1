#include "server/execution/execution_queues.h"

#include <utility>

#include "server/execution/execution.h"

namespace opmill {
namespace {

// The device runs executions in order, and allocates scratch for each of them. It therefore gets
// large executions only up to a total size, or a single one, so that small ones never wait for more
// than that; and it gets enough small ones to fill several submissions. All others wait here, where
// cancelling them costs the device nothing.
constexpr uint64_t kLargeBytes = uint64_t{4} << 20;
constexpr uint64_t kMaxRunningLargeBytes = uint64_t{32} << 20;
constexpr uint32_t kMaxRunningSmall = 192;

// How long an execution without input keeps its memory when others need it. The first value is
// shorter than the time for which a begin waits on its stream, because everything behind the begin
// waits too.
constexpr absl::Duration kSilentPatience = absl::Milliseconds(100);
constexpr absl::Duration kUploadPatience = absl::Seconds(5);
constexpr size_t kMostStalledAtOnce = 64;

bool IsLarge(const QueuePlace& place) { return place.work_bytes >= kLargeBytes; }

}  // namespace

QueuePlace& ExecutionQueues::PlaceOf(Execution& execution) { return execution.place_; }
const QueuePlace& ExecutionQueues::PlaceOf(const Execution& execution) { return execution.place_; }

void ExecutionQueues::Enter(const std::shared_ptr<Execution>& execution, absl::Time now) {
  PlaceOf(*execution) = {&silent_, silent_.insert(silent_.end(), execution), now};
}

void ExecutionQueues::AwaitInput(Execution& execution, absl::Time now) {
  MoveTo(uploading_, execution, now);
}

void ExecutionQueues::AwaitOperator(Execution& execution, absl::Time now) {
  MoveTo(preparing_, execution, now);
}

void ExecutionQueues::AwaitDevice(Execution& execution, uint64_t work_bytes, absl::Time now) {
  PlaceOf(execution).work_bytes = work_bytes;
  MoveTo(IsLarge(PlaceOf(execution)) ? large_ : small_, execution, now);
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
  if (place.queue == nullptr) return;
  place.queue->erase(place.position);
  place.queue = nullptr;
}

std::vector<std::shared_ptr<Execution>> ExecutionQueues::Stalled(absl::Time now) const {
  std::vector<std::shared_ptr<Execution>> stalled;
  const auto take = [&](const Queue& queue, absl::Time until) {
    for (const std::shared_ptr<Execution>& execution : queue) {
      if (PlaceOf(*execution).since > until || stalled.size() == kMostStalledAtOnce) break;
      stalled.push_back(execution);
    }
  };
  take(silent_, now - kSilentPatience);
  if (stalled.empty()) take(uploading_, now - kUploadPatience);
  return stalled;
}

std::shared_ptr<Execution> ExecutionQueues::NextForDevice() {
  Queue* queue = nullptr;
  if (!small_.empty() && running_small_ < kMaxRunningSmall) {
    queue = &small_;
    ++running_small_;
  } else if (!large_.empty() && (running_large_bytes_ == 0 ||
                                 running_large_bytes_ + PlaceOf(*large_.front()).work_bytes <=
                                     kMaxRunningLargeBytes)) {
    queue = &large_;
    running_large_bytes_ += PlaceOf(*large_.front()).work_bytes;
  } else {
    return nullptr;
  }
  std::shared_ptr<Execution> next = std::move(queue->front());
  queue->pop_front();
  PlaceOf(*next).queue = nullptr;
  return next;
}

void ExecutionQueues::RunEnded(const Execution& execution) {
  const QueuePlace& place = PlaceOf(execution);
  if (IsLarge(place)) {
    running_large_bytes_ -= place.work_bytes;
  } else {
    --running_small_;
  }
}

}  // namespace opmill
