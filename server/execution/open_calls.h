// The Execute and ExecuteStream calls in progress; a draining server waits until there are none.
#ifndef OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_
#define OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opmill {

class OpenCalls {
 public:
  class Call {
   public:
    virtual ~Call() = default;
    virtual bool is_stream() const { return false; }
    // Ends on its own once nothing is under way. Must not wait for anything.
    virtual void Drain() {}
    // Ends what is under way with this error. Must not wait for anything.
    virtual void Abort(const absl::Status& why) = 0;
    // Ends what has waited for the caller for `timeout`. Must not wait for anything.
    virtual void EndIfStalled(absl::Time /*now*/, absl::Duration /*timeout*/) {}
  };

  // Drains it at once when all are draining.
  void Add(Call& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // No call to it is under way after.
  void Remove(Call& call) ABSL_LOCKS_EXCLUDED(mutex_);

  uint32_t streams() const { return streams_; }

  void DrainAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void AbortAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndStalled(absl::Time now, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // False when some are still open then.
  bool WaitUntilNone(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint32_t> streams_ = 0;  // of the calls
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_
