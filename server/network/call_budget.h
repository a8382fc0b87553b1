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
// does not bound them. Whether a call is abandoned is known late, when thousands may be open, so a
// call is taken from an allowance of its address, and from one of all addresses, when it begins,
// and given back when it completes. Allowances refill slowly. While one is exceeded, the open calls
// of a connection may cost only as much as some first calls and those that it has let complete,
// less those that it has abandoned. An address that opens many connections has one first call in
// each of them.
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
  Account* Open(std::string peer, const std::string& address, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(Account* account) ABSL_LOCKS_EXCLUDED(mutex_);

  // What a call costs without its metadata.
  static constexpr uint64_t kBytesOfCall = uint64_t{16} << 10;

  // If Begin or AddMetadata returns a connection, that may be this one or another one.
  std::optional<Closing> Begin(Account& account, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the latest call.
  std::optional<Closing> AddMetadata(Account& account, uint64_t bytes, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `bytes` is all that the call costs. A call is completed unless it is abandoned.
  void End(Account& account, uint64_t bytes, bool is_completed, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Frames that the transport answers without a call. Returns false if the connection must be
  // closed for them.
  bool AllowControlFrames(Account& account, uint64_t count, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Address;

  // Refills continuously.
  class Allowance {
   public:
    explicit Allowance(uint64_t most);
    // Gives back if `count` is negative.
    void Take(double count, absl::Time now);
    bool is_exceeded() const { return left_ < 0; }
    bool is_full() const { return left_ >= most_; }

   private:
    double most_;
    double left_;
    absl::Time refilled_at_ = absl::InfinitePast();
  };

  // Adds to the cost of the open calls.
  std::optional<Closing> Add(Account& account, uint64_t bytes, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The connection to close because of the cost of the open calls, or null.
  Account* FindWorst(const Address& address) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void ForgetIdleAddresses(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t max_open_bytes_;
  const uint64_t max_open_bytes_per_address_;
  const uint32_t max_calls_per_connection_;

  absl::Mutex mutex_;
  uint64_t open_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  Allowance allowance_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<Address>> addresses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_CALL_BUDGET_H_
