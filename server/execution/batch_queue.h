// Which executions of a model are joined to one run, and when: without threads, locks, clock or
// device.
#ifndef OPMILL_SERVER_EXECUTION_BATCH_QUEUE_H_
#define OPMILL_SERVER_EXECUTION_BATCH_QUEUE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "server/execution/fair_queue.h"
#include "server/models/batch_options.h"

namespace opmill {

class CallerAccount;
class Execution;

// How many rows the program has that computes so many: few numbers of rows have programs, each of
// which may keep packed weights. The rest of the rows is empty.
inline uint32_t JoinedRows(uint32_t rows, uint32_t most) {
  return std::min(most, std::bit_ceil(rows));
}

// Not thread-safe. Executions are opaque handles; all of them have the same sizes but the first.
//
// While two batches run, executions gather. After that the next batch is closed
// - at once, if there are rows for one of a preferred number: the largest that they suffice for,
// - at once, if there are max_rows,
// - otherwise when the first execution has waited for max_delay, or half of the time that it had
//   until its deadline: then the batch has all of them, or as many as fill the program of fewer
//   rows, if more than a quarter of the program for all would be empty.
// Callers take turns, and among the executions of a caller the priority decides.
class BatchQueue {
 public:
  struct Next {
    std::vector<std::shared_ptr<Execution>> batch;  // empty: none is closed
    absl::Time again = absl::InfiniteFuture();      // when one is closed without any other event
  };

  explicit BatchQueue(BatchOptions options)
      : options_(std::move(options)), queue_(options_.max_rows) {}

  // `rows` is at least 1 and at most max_rows.
  void Add(std::shared_ptr<Execution> execution, const CallerAccount* caller, int32_t priority,
           uint32_t rows, absl::Time deadline, absl::Time now);
  // No effect if it has been taken.
  void Remove(const Execution* execution);
  // The next batch, which runs until RunEnded.
  Next Take(absl::Time now);
  void RunEnded() { --running_; }

  uint64_t rows() const { return rows_; }

 private:
  struct Item {
    std::shared_ptr<Execution> execution;
    uint32_t rows = 0;
  };
  using Queue = FairQueue<const CallerAccount*, Item>;
  struct Waiting {
    Queue::Place place;
    uint32_t rows = 0;
    std::multiset<absl::Time>::iterator due;
  };

  // The rows of the batch to close now; 0: none.
  uint64_t RowsToTake(absl::Time now) const;
  void Forget(std::unordered_map<const Execution*, Waiting>::iterator waiting);

  const BatchOptions options_;
  Queue queue_;
  std::unordered_map<const Execution*, Waiting> waiting_;
  std::multiset<absl::Time> due_;  // when those that wait have waited long enough
  uint64_t rows_ = 0;
  uint32_t running_ = 0;  // batches
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_BATCH_QUEUE_H_
