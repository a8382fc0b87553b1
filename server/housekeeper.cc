#include "server/housekeeper.h"

#include <algorithm>
#include <optional>

#include "kernels/base/process_memory.h"
#include "kernels/base/steady_time.h"
#include "server/host/process_usage.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(20);
constexpr absl::Duration kMostBetweenStallChecks = absl::Seconds(1);
// Each one visits all open calls.
constexpr absl::Duration kLeastBetweenUnreadChecks = absl::Milliseconds(500);
// After a release, the next execution must fault in fresh memory: a second per gigabyte in
// software.
constexpr absl::Duration kIdleBeforeRelease = absl::Seconds(5);
// Requests that are not executions, such as refused messages, leave free memory behind too.
constexpr absl::Duration kIdleBeforeTrim = absl::Seconds(2);
constexpr absl::Duration kLeastBetweenTrimChecks = absl::Seconds(3);
constexpr int64_t kUnusedBytesBeforeTrim = 32 << 20;
constexpr absl::Duration kLeastBetweenReleases = absl::Seconds(1);
// The memory of a closed connection is freed later, on gRPC's threads. At a lower rate than this,
// new connections take more memory than closed ones return.
constexpr absl::Duration kLeastBetweenClosings = absl::Milliseconds(40);

// Resident but not allocated memory: the program, its stacks, the driver's memory, and free memory
// of the allocator. Negative if much allocated memory has not been touched yet; nullopt if
// concurrent calls allocate or free much.
std::optional<int64_t> ReadUnusedBytes() {
  constexpr uint64_t kMuch = uint64_t{1} << 20;
  const uint64_t before = AllocatedBytes();
  const uint64_t resident = ReadResidentBytes();
  const uint64_t after = AllocatedBytes();
  if (std::max(before, after) - std::min(before, after) > kMuch) return std::nullopt;
  return static_cast<int64_t>(resident) - static_cast<int64_t>(after);
}

}  // namespace

Housekeeper::Housekeeper(Device& device, OperatorCache& cache, TensorStore& tensors,
                         Executor& executor, OpenCalls& open_calls, Connections& connections,
                         const Limits& limits)
    : device_(device),
      cache_(cache),
      tensors_(tensors),
      executor_(executor),
      open_calls_(open_calls),
      connections_(connections),
      memory_limit_(limits.memory_limit),
      stall_timeout_(limits.stall_timeout),
      thread_([this] { Run(); }) {}

Housekeeper::~Housekeeper() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stops_.SignalAll();
  thread_.join();
}

void Housekeeper::Run() {
  least_unused_bytes_ = ReadUnusedBytes().value_or(least_unused_bytes_);
  while (!StopsWithinATick()) {
    const absl::Time now = SteadyNow();
    connections_.Check(now);
    tensors_.DropExpired(now);
    WatchMemory(now);
    EndStalled(now);
    EndUnread(now);
    ReleaseWhenIdle(now);
  }
}

bool Housekeeper::StopsWithinATick() {
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
  const absl::MutexLock lock(&mutex_);
  return stops_.Await(&mutex_, stopping, SteadyNow() + kTick);
}

void Housekeeper::WatchMemory(absl::Time now) {
  const uint64_t much = memory_limit_ / 8 * 7;
  const uint64_t too_much = memory_limit_ / 16 * 15;
  uint64_t resident = ReadResidentBytes();
  if (resident > much && now - last_release_ >= kLeastBetweenReleases) {
    last_release_ = now;
    ReleaseMemory();
    resident = ReadResidentBytes();
    if (resident > too_much) {
      cache_.Evict(resident - much);
      device_.ReleaseIdleKernels();
      ReturnFreeMemory();
      resident = ReadResidentBytes();
    }
  }
  const bool is_short = resident > too_much;
  if (is_short && now - last_closed_ >= kLeastBetweenClosings && connections_.CloseWorst(now)) {
    last_closed_ = now;
    last_release_ = absl::InfinitePast();
  }
  if (executor_.SetShortOfMemory(is_short) == is_short) return;
  LogLine(LogLevel::kWarning, is_short ? "memory_short" : "memory_again")
      .Add("resident_bytes", resident)
      .Add("memory_limit", memory_limit_);
}

void Housekeeper::EndStalled(absl::Time now) {
  if (now - last_stall_check_ < std::min(stall_timeout_ / 8, kMostBetweenStallChecks)) return;
  last_stall_check_ = now;
  open_calls_.EndStalled(now, stall_timeout_);
}

// Makes room for a caller that found none: ends calls of others whose results are read too slowly.
void Housekeeper::EndUnread(absl::Time now) {
  if (now - last_unread_check_ < kLeastBetweenUnreadChecks) return;
  const std::shared_ptr<const CallerAccount> asking = executor_.TakeRefused();
  if (asking == nullptr) return;
  last_unread_check_ = now;
  open_calls_.EndUnread(now, [&](const CallerAccount& owner) {
    return &owner != asking.get() && executor_.ExceedsShare(owner, *asking);
  });
}

void Housekeeper::ReleaseWhenIdle(absl::Time now) {
  if (executor_.open_executions() > 0) {
    is_released_ = false;
    idle_since_ = absl::InfiniteFuture();
  } else {
    idle_since_ = std::min(idle_since_, now);
    const absl::Duration idle = now - idle_since_;
    if (!is_released_ && idle >= kIdleBeforeRelease) {
      is_released_ = true;
      ReleaseMemory();
    }
    if (idle >= kIdleBeforeTrim) TrimIfWorthIt(now);
  }
}

void Housekeeper::TrimIfWorthIt(absl::Time now) {
  if (now - last_trim_check_ < kLeastBetweenTrimChecks) return;
  last_trim_check_ = now;
  const std::optional<int64_t> unused_bytes = ReadUnusedBytes();
  if (!unused_bytes.has_value()) return;
  least_unused_bytes_ = std::min(least_unused_bytes_, *unused_bytes);
  if (*unused_bytes - least_unused_bytes_ < kUnusedBytesBeforeTrim) return;
  ReturnFreeMemory();
  least_unused_bytes_ = ReadUnusedBytes().value_or(least_unused_bytes_);
}

void Housekeeper::ReleaseMemory() {
  device_.ReleaseIdleMemory();
  ReturnFreeMemory();
}

}  // namespace opmill
