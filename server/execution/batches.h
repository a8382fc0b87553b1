// Executions that wait to be joined to one run, and the programs of such runs.
#ifndef OPMILL_SERVER_EXECUTION_BATCHES_H_
#define OPMILL_SERVER_EXECUTION_BATCHES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/execution/batch_queue.h"
#include "server/execution/compilations.h"
#include "server/host/deadline_timer.h"
#include "server/host/worker_pool.h"
#include "server/models/compile_limit.h"

namespace opmill {

class BatchGroup;
class Execution;
struct ExecutionRequest;
struct JoinedShape;

// Executions that were closed to a batch. They run joined, or each for itself if there is no
// joined program. When all of them have left it, their group closes the next one.
struct Batch {
  ~Batch();

  std::shared_ptr<BatchGroup> group;
  std::vector<std::shared_ptr<Execution>> members;  // of a joined run, until it starts
  std::shared_ptr<const CompiledProgram> joined;    // null: each runs for itself
  uint32_t rows = 0;                                // of the joined program
  std::atomic<bool> has_started = false;
};

// Thread-safe.
class Batches {
 public:
  // Gives the members of a batch to the queue for the device. Called without any lock.
  using Submit = std::function<void(const std::vector<std::shared_ptr<Execution>>& members,
                                    const std::shared_ptr<Batch>& batch)>;

  // All must outlive it, and all executions must have ended before it ends.
  Batches(Compilations& compilations, const CompileLimit& limit, WorkerPool& workers,
          DeadlineTimer& timer, Submit submit)
      : compilations_(compilations),
        limit_(limit),
        workers_(workers),
        timer_(timer),
        submit_(std::move(submit)) {}

  // The requests that may be joined with this one; null if it is computed alone. Inputs and outputs
  // have this many bytes for each row.
  std::shared_ptr<BatchGroup> GroupOf(const ExecutionRequest& request, uint64_t row_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The execution, which has all of its input, waits for its batch.
  void Add(const std::shared_ptr<Execution>& execution);
  // It has ended.
  static void Remove(const Execution& execution);

 private:
  friend class BatchGroup;
  friend struct Batch;

  void Advance(const std::shared_ptr<BatchGroup>& group);
  std::shared_ptr<Batch> MakeBatch(const std::shared_ptr<BatchGroup>& group,
                                   const std::vector<std::shared_ptr<Execution>>& members);
  std::shared_ptr<const CompiledProgram> FindJoined(const std::shared_ptr<BatchGroup>& group,
                                                    const JoinedShape& shape);
  void MakeJoined(const std::shared_ptr<BatchGroup>& group, const JoinedShape& shape);

  Compilations& compilations_;
  const CompileLimit& limit_;
  WorkerPool& workers_;
  DeadlineTimer& timer_;
  const Submit submit_;
  absl::Mutex mutex_;
  // By Joinable::Key.
  absl::flat_hash_map<std::string, std::shared_ptr<BatchGroup>> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_BATCHES_H_
