// The open connections of the HTTP listener, and which of them give way to others.
#ifndef OPMILL_SERVER_HTTP_REST_CONNECTIONS_H_
#define OPMILL_SERVER_HTTP_REST_CONNECTIONS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"
#include "server/config/options.h"

namespace opmill {

// What a connection does at present, and how much of it is done. Thread-safe.
class RestProgress {
 public:
  enum class Phase { kIdle, kReceiving, kRunning, kSending };

  void Enter(Phase phase) ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  Phase phase() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_served() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time since() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether its caller sends or reads, in this phase, more slowly than callers may who have what
  // others need (Pace).
  bool IsSlow(Phase phase, absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kIdle;
  absl::Time since_ ABSL_GUARDED_BY(mutex_) = SteadyNow();
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_served_ ABSL_GUARDED_BY(mutex_) = false;
};

// Thread-safe.
class RestConnections {
 public:
  class Member {
   public:
    explicit Member(std::string address) : address_(std::move(address)) {}
    virtual ~Member() = default;
    // Ends the connection soon. Must not block.
    virtual void Close() = 0;

    const std::string& address() const { return address_; }
    RestProgress& progress() { return progress_; }

   private:
    const std::string address_;
    RestProgress progress_;
  };

  explicit RestConnections(const Limits& limits)
      : max_connections_(limits.max_connections),
        max_per_address_(limits.connections_per_address()) {}

  // False if there is no room, and no other connection to close for it: one that waits for a
  // request, first of the address with most of these, or one that receives a body too slowly.
  bool Admit(Member& member) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(Member& member) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes those that receive a body too slowly.
  void CloseSlow() ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes all, and returns when they have been removed.
  void CloseAll() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t open() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t refused() const { return refused_; }
  uint64_t closed() const { return closed_; }

 private:
  // Null if none of this address, or of any if it is empty, may be closed.
  Member* FindVictim(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t max_connections_;
  const uint32_t max_per_address_;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<uint64_t> closed_ = 0;

  mutable absl::Mutex mutex_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Member*> members_ ABSL_GUARDED_BY(mutex_);  // those that take a place
  absl::flat_hash_set<Member*> leaving_ ABSL_GUARDED_BY(mutex_);  // closed, but not removed yet
  absl::flat_hash_map<std::string, uint32_t> of_address_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_REST_CONNECTIONS_H_
