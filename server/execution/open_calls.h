// The Execute and ExecuteStream calls in progress; a draining server waits until there are none.
#ifndef OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_
#define OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
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

  void Add(Call& call);     // drains it at once when all are draining
  void Remove(Call& call);  // no call to it is under way after

  uint32_t streams() const { return streams_; }

  void DrainAll();
  void AbortAll(const absl::Status& why);
  void EndStalled(absl::Time now, absl::Duration timeout);
  bool WaitUntilNone(absl::Time deadline);  // false when some are still open then

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  absl::flat_hash_set<Call*> calls_;
  std::atomic<uint32_t> streams_ = 0;  // of the calls
  bool draining_ = false;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_OPEN_CALLS_H_
