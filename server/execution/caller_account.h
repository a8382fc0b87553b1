// Who calls, and what each caller has in progress.
#ifndef OPMILL_SERVER_EXECUTION_CALLER_ACCOUNT_H_
#define OPMILL_SERVER_EXECUTION_CALLER_ACCOUNT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/execution/pace.h"
#include "server/execution/shared_limit.h"
#include "server/execution/token_bucket.h"
#include "server/observe/statistics.h"

namespace opmill {

// The identity of a caller: the `name` of its token or certificate, or else the address in `peer`
// without the port. `peer` has gRPC's form ("ipv4:10.0.0.7:51342"). All Unix sockets are one
// address.
std::string CallerIdentity(absl::string_view name, absl::string_view peer);

// Thread-safe.
class CallerAccount {
 public:
  CallerAccount(std::string identity, CallerCounters& counters, TokenBucket rate)
      : identity_(std::move(identity)), counters_(counters), rate_(rate) {}

  const std::string& identity() const { return identity_; }
  CallerCounters& counters() const { return counters_; }

  Holding executions;
  Holding queued;  // those of the executions that wait for the device
  Holding bytes;
  Holding streams;
  Holding model_waits;  // requests that wait for models
  Holding bodies;       // bytes of HTTP requests that arrive or are decoded
  Pace pace;            // guarded by the mutex of WaitingExecutions

  // Held from the check of the caller's limits until what they limit is taken, so that two begins
  // do not pass the check for the same room.
  absl::Mutex begin_mutex;

  // Counts a begin. Returns zero, or how long the next begin has to wait, without counting one.
  absl::Duration CountBegin(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // The begin that was counted did not take place.
  void UncountBegin() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string identity_;
  CallerCounters& counters_;
  absl::Mutex mutex_;
  TokenBucket rate_ ABSL_GUARDED_BY(mutex_);
};

// The callers that have something in progress, and those that had something a short time ago, up to
// kMostIdle of them: in the last kRemembered, and in the time after which the rate of a caller that
// has done nothing allows as much as that of a new one. Thread-safe.
class CallerAccounts {
 public:
  static constexpr absl::Duration kRemembered = absl::Minutes(1);
  static constexpr size_t kMostIdle = 1024;

  // `rate` applies to each caller. `statistics` must outlive the accounts.
  CallerAccounts(TokenBucket rate, Statistics& statistics)
      : rate_(rate),
        remembered_(std::max(kRemembered, rate.time_to_fill())),
        statistics_(statistics) {}

  // A caller has something in progress as long as a reference to its account exists.
  std::shared_ptr<CallerAccount> Find(absl::string_view name, absl::string_view peer,
                                      absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether there are at least two callers.
  bool several() const { return count_.load(std::memory_order_relaxed) > 1; }
  size_t count() const { return count_; }

 private:
  struct Entry {
    std::shared_ptr<CallerAccount> account;
    absl::Time last_found;
  };
  using Entries = std::list<Entry>;  // the longest unused first

  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TokenBucket rate_;
  const absl::Duration remembered_;
  Statistics& statistics_;
  absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<absl::string_view, Entries::iterator> by_identity_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> count_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_CALLER_ACCOUNT_H_
