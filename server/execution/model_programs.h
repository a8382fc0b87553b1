// Work for requests of ONNX models, on workers of the executor: reads files that requests carry,
// and makes programs for the sizes that requests have.
#ifndef OPMILL_SERVER_EXECUTION_MODEL_PROGRAMS_H_
#define OPMILL_SERVER_EXECUTION_MODEL_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/onnx/model.h"
#include "server/execution/caller_account.h"
#include "server/execution/executor.h"
#include "server/execution/fair_queue.h"
#include "server/execution/shared_limit.h"
#include "server/host/deadline_timer.h"
#include "server/models/compile_limit.h"
#include "server/models/model.h"

namespace opmill {

// One worker makes a program, and all requests that need the same one wait for it; once none does,
// it is stopped. Callers take turns, and two workers are left for others, one of them for
// compilations. Thread-safe; callbacks are called without a lock. The executor must outlive all
// requests; its workers may keep this object alive for longer.
class ModelPrograms : public std::enable_shared_from_this<ModelPrograms> {
 public:
  using Program = std::shared_ptr<const onnx::ModelProgram>;
  using Done = std::function<void(const absl::StatusOr<Program>&)>;
  using Explained =
      std::function<void(const absl::StatusOr<std::shared_ptr<const onnx::Explanation>>&)>;
  using ReadModel =
      std::function<absl::StatusOr<std::shared_ptr<const Model>>(const std::stop_token& abandoned)>;
  using ReadDone = std::function<void(const absl::StatusOr<std::shared_ptr<const Model>>&)>;
  class Wait;

  // At most `max_waits` requests wait; callers share the limit.
  ModelPrograms(Executor& executor, uint64_t max_waits);

  // Calls `done` once: on a worker with the program or why there is none; with DeadlineExceeded;
  // with the status of Cancel. Returns ResourceExhausted, and does not call it, if too many wait.
  // The model must have a graph.
  absl::StatusOr<std::shared_ptr<Wait>> Make(const std::shared_ptr<const Model>& model,
                                             const onnx::InputBindings& bindings,
                                             const std::shared_ptr<CallerAccount>& caller,
                                             absl::Time deadline, Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for what becomes of its nodes, which is not kept.
  absl::StatusOr<std::shared_ptr<Wait>> Explain(const std::shared_ptr<const Model>& model,
                                                const onnx::InputBindings& bindings,
                                                const std::shared_ptr<CallerAccount>& caller,
                                                absl::Time deadline, Explained done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for `read`, which reads the file of one request, `file`: a file need not be what its
  // sender says, so no other request waits for it. `name`: of the model, for sentences.
  absl::StatusOr<std::shared_ptr<Wait>> Read(const void* file, std::string name, ReadModel read,
                                             const std::shared_ptr<CallerAccount>& caller,
                                             absl::Time deadline, ReadDone done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the wait, unless it has ended. Work that no request waits for is not begun, or stopped.
  void Cancel(const std::shared_ptr<Wait>& wait, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Making;
  enum class Work { kProgram, kExplanation, kModel };
  using Key = std::tuple<Work, const void*, std::string>;  // of a model and sizes, or of a file
  using Queue = FairQueue<const CallerAccount*, std::shared_ptr<Making>>;
  using Made = absl::StatusOr<std::shared_ptr<const void>>;
  using DoWork = std::function<Made(const std::stop_token& abandoned)>;

  // `of`: what is limited.
  absl::StatusOr<std::shared_ptr<Wait>> Await(Key key, LimitedProgram of, DoWork work,
                                              absl::string_view what,
                                              const std::shared_ptr<CallerAccount>& caller,
                                              absl::Time deadline,
                                              std::function<void(const Made&)> done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TooManyWait(uint64_t up_to) const;
  // Does the work whose turn it is. False if none is left.
  bool MakeNext() ABSL_LOCKS_EXCLUDED(mutex_);

  Executor& executor_;
  SharedLimit waits_;
  const uint32_t max_making_;
  absl::Mutex mutex_;
  absl::flat_hash_map<Key, std::shared_ptr<Making>> makings_ ABSL_GUARDED_BY(mutex_);
  Queue queue_ ABSL_GUARDED_BY(mutex_){1};  // those that have not begun
  uint32_t making_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The work that a request waits for. It may be cancelled at any time, even before it is known.
// Thread-safe.
class PendingWork {
 public:
  // The next step of the work, which may begin before the last one was added.
  void Add(ModelPrograms& programs, const std::shared_ptr<ModelPrograms::Wait>& wait)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Also ends the work that is yet to come.
  void Cancel(ModelPrograms& programs, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops at Cancel.
  std::stop_token token() const { return stop_.get_token(); }
  // That of Cancel; OK before.
  absl::Status cancelled() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return cancelled_;
  }

 private:
  std::stop_source stop_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<ModelPrograms::Wait>> waits_ ABSL_GUARDED_BY(mutex_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_MODEL_PROGRAMS_H_
