// The Execute and ExecuteStream calls in progress; a draining server waits until there are none.
#ifndef OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_
#define OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"

namespace opmill {

class CallerAccount;

class OpenCalls {
 public:
  using MayEnd = std::function<bool(const CallerAccount& owner)>;

  class Call {
   public:
    virtual ~Call() = default;
    virtual bool is_stream() const { return false; }
    // The call ends by itself once it has no work in progress. Must not block.
    virtual void Drain() {}
    // Ends the work in progress with this error. Must not block.
    virtual void Abort(const absl::Status& why) = 0;
    // Ends work that has waited for the caller for `timeout`. Must not block.
    virtual void EndIfStalled(absl::Time /*now*/, absl::Duration /*timeout*/) {}
    // Ends the call if it has results that its caller reads too slowly (Pace), and `may_end`
    // accepts the caller. Must not block.
    virtual void EndIfUnread(absl::Time /*now*/, const MayEnd& /*may_end*/) {}
  };

  // Drains the call at once if DrainAll has been called.
  void Add(Call& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // After this returns, no method of the call is running.
  void Remove(Call& call) ABSL_LOCKS_EXCLUDED(mutex_);

  uint32_t streams() const { return streams_; }

  void DrainAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void AbortAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndStalled(absl::Time now, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndUnread(absl::Time now, const MayEnd& may_end) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns false if some calls are still open at the deadline.
  bool WaitUntilNone(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  SteadyCondVar removed_;  // the last call
  absl::flat_hash_set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint32_t> streams_ = 0;  // the number of calls that are streams
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_
