// Limits on the calls that are open, and on those that callers abandon.
#ifndef OPMILL_SERVER_NETWORK_CALL_BUDGET_H_
#define OPMILL_SERVER_NETWORK_CALL_BUDGET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opmill {

// Counts each call from its first byte until the transport has released it, which for an abandoned
// call may be long after the caller has forgotten it. A call costs memory: an estimate for the call
// itself, and what its metadata take.
//
// The open calls of all connections, and those of one address, have a limit. At the limit the
// connection whose calls cost most is closed.
//
// Abandoned calls are those that their callers reset, or whose connection ends before they do. They
// take processor time without a wait for the answer, so that HTTP/2's limit on concurrent calls
// does not bound them. Each address may abandon calls at a certain rate, and so may all together.
// Beyond that, a connection may have only as many open calls as it has let complete, less those
// that it has abandoned.
//
// Thread-safe. `now` is the reading of a clock that does not jump.
class CallBudget {
 public:
  // The calls of one connection.
  class Account;
  enum class Excess { kOpenCalls, kAbandonedCalls };
  // A connection that must be closed. It counts as closed from then on.
  struct Closing {
    std::string peer;
    Excess excess;
  };

  // `max_open_bytes`: the most that all open calls may cost.
  CallBudget(uint64_t max_open_bytes, uint32_t max_calls_per_connection);
  ~CallBudget();

  // For a new connection. The account must be closed, after all of its calls have ended.
  Account* Open(std::string peer, const std::string& address, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(Account* account) ABSL_LOCKS_EXCLUDED(mutex_);

  // What a call costs without its metadata.
  static constexpr uint64_t kBytesOfCall = uint64_t{16} << 10;

  // If Begin or AddMetadata returns a connection, that may be this one or another one.
  std::optional<Closing> Begin(Account& account, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Closing> AddMetadata(Account& account, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called at most once for each call, before its end. `bytes` is all that the call costs.
  void Abandon(Account& account, uint64_t bytes, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(Account& account, uint64_t bytes, bool is_completed) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Address;

  // How much may be abandoned at once. It refills continuously.
  struct Allowance {
    double left_bytes = 0;
    absl::Duration refilled_at = absl::ZeroDuration();
  };

  void Refill(Allowance& allowance, double most_bytes, absl::Duration now) const;
  std::optional<Closing> CheckOpen(Address& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Closing MarkClosed(Account& account, Excess excess) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetIdleAddresses(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t max_open_bytes_;
  const uint64_t max_open_bytes_per_address_;
  const uint32_t max_calls_per_connection_;

  absl::Mutex mutex_;
  uint64_t open_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // without those of closed connections
  Allowance allowance_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<Address>> addresses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_CALL_BUDGET_H_
