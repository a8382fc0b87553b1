#include "server/execution/batch_queue.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace opmill {

void BatchQueue::Add(std::shared_ptr<Execution> execution, const CallerAccount* caller,
                     int32_t priority, uint32_t rows, absl::Time deadline, absl::Time now) {
  Waiting& waiting = waiting_[execution.get()];
  waiting.rows = rows;
  waiting.due = due_.insert(now + std::min(options_.max_delay, (deadline - now) / 2));
  waiting.place = queue_.Push(caller, priority, rows, {std::move(execution), rows});
  rows_ += rows;
}

void BatchQueue::Remove(const Execution* execution) {
  const auto found = waiting_.find(execution);
  if (found == waiting_.end()) return;
  queue_.Remove(found->second.place);
  Forget(found);
}

void BatchQueue::Forget(std::unordered_map<const Execution*, Waiting>::iterator waiting) {
  rows_ -= waiting->second.rows;
  due_.erase(waiting->second.due);
  waiting_.erase(waiting);
}

uint64_t BatchQueue::RowsToTake(absl::Time now) const {
  const auto& preferred = options_.preferred_rows;
  const auto above = std::upper_bound(preferred.begin(), preferred.end(), rows_);
  if (above != preferred.begin()) return *std::prev(above);
  if (rows_ >= options_.max_rows) return options_.max_rows;
  if (*due_.begin() > now) return 0;
  const auto all = static_cast<uint32_t>(rows_);
  const uint32_t joined = JoinedRows(all, options_.max_rows);
  return joined - all > joined / 4 ? std::bit_floor(all) : all;
}

BatchQueue::Next BatchQueue::Take(absl::Time now) {
  Next next;
  // The second one is ready when the first ends, and its inputs arrive meanwhile.
  constexpr uint32_t kMostRunning = 2;
  if (running_ == kMostRunning || waiting_.empty()) return next;
  const uint64_t most = RowsToTake(now);
  if (most == 0) {
    next.again = *due_.begin();
    return next;
  }
  uint64_t rows = 0;
  for (;;) {
    // An execution with more rows than a preferred number runs alone.
    std::optional<Item> item =
        queue_.Take([](const CallerAccount*, const Item&) { return true; },
                    [&](const Item& first) { return rows == 0 || rows + first.rows <= most; });
    if (!item.has_value()) break;
    rows += item->rows;
    Forget(waiting_.find(item->execution.get()));
    next.batch.push_back(std::move(item->execution));
  }
  ++running_;
  return next;
}

}  // namespace opmill
