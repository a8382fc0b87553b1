// Tracks the open connections: the traffic of each one, and which ones to close.
#ifndef OPMILL_SERVER_NETWORK_CONNECTIONS_H_
#define OPMILL_SERVER_NETWORK_CONNECTIONS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace opmill {

// The socket of a connection that gRPC serves, as the operating system sees it.
class ConnectionSocket {
 public:
  struct Traffic {
    uint64_t received_bytes = 0;  // by this machine, whether gRPC has read them or not
    uint64_t answered_bytes = 0;  // sent, and acknowledged by the peer
  };

  virtual ~ConnectionSocket() = default;
  virtual std::optional<Traffic> ReadTraffic() = 0;  // nullopt once it is closed
  // Ends it for both sides, and drops what gRPC has not read yet.
  virtual void Close() = 0;
};

struct ConnectionPeer {
  std::string name;     // as gRPC calls it, without percent encoding: "ipv4:10.0.0.7:51342"
  std::string address;  // what it shares with the peer's other connections: "10.0.0.7"
  // Whether gRPC's calls name it. Calls over a Unix socket do not, so the server cannot know which
  // of these connections are in use.
  bool is_named = true;
};

// One open connection. Each call in progress holds a reference to it, so the reference count gives
// the number of open calls.
class Connection {
 public:
  // Payload of messages that have arrived whole.
  void AddPayload(uint64_t bytes) { payload_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // When bytes were last seen to arrive, of whatever call.
  absl::Time last_received_at() const {
    return absl::FromUnixNanos(last_received_nanos_.load(std::memory_order_relaxed));
  }

 private:
  friend class Connections;
  Connection(ConnectionPeer peer, std::unique_ptr<ConnectionSocket> socket, absl::Time now)
      : peer_(std::move(peer)), socket_(std::move(socket)), accepted_at_(now) {}

  uint64_t unanswered_bytes() const { return traffic_.received_bytes - received_at_answer_; }
  // What it has sent since a message was last whole.
  uint64_t overhead_bytes() const { return traffic_.received_bytes - received_at_message_; }

  const ConnectionPeer peer_;
  const std::unique_ptr<ConnectionSocket> socket_;
  const absl::Time accepted_at_;
  std::atomic<uint64_t> payload_bytes_ = 0;
  std::atomic<int64_t> last_received_nanos_ = absl::ToUnixNanos(accepted_at_);
  // Guarded by the mutex of Connections, as all below.
  bool has_called_ = false;  // a call of it has passed access control
  ConnectionSocket::Traffic traffic_;
  uint64_t received_at_answer_ = 0;         // the bytes received when it was last answered
  uint64_t received_at_message_ = 0;        // and when its payload was last seen to have grown
  uint64_t seen_payload_bytes_ = 0;         // what that was
  absl::Time answered_at_ = accepted_at_;   // when it was last answered
  absl::Time last_used_at_ = accepted_at_;  // the last time that a call was seen under way
};

// Decides which connections the server keeps. Thread-safe.
//
// A connection takes a slot as soon as it is accepted, and time and memory before gRPC knows of a
// call. Connections are therefore judged by the traffic that the operating system counts for them,
// with or without TLS.
//
// HTTP/2 flow control makes the server answer an upload after each megabyte at the latest. A peer
// that sends more without an answer than its calls explain is not uploading, and its connection is
// closed.
class Connections {
 public:
  enum class Reason { kFlood, kIncomplete, kNoRequest, kRoom, kMemory };
  static constexpr std::array kReasons = {Reason::kFlood, Reason::kIncomplete, Reason::kNoRequest,
                                          Reason::kRoom, Reason::kMemory};
  static absl::string_view NameOf(Reason reason);

  explicit Connections(const Limits& limits)
      : max_connections_(limits.max_connections),
        max_per_address_(limits.connections_per_address()) {}

  // Takes an accepted connection in. When there is no slot for it, one goes that has made no
  // request, of the address that has most of those; else the one that has been idle longest. False
  // when all are in use: then it is to be closed.
  bool Admit(ConnectionPeer peer, std::unique_ptr<ConnectionSocket> socket, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For a call that has passed access control; by gRPC's name of its peer. Null where the system
  // hands no connections over (server/network/listener.h).
  std::shared_ptr<Connection> Find(absl::string_view grpc_peer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes those that flood the server or, while slots are short, make no request. To be called
  // several times a second.
  void Check(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // While memory is short: closes those that have sent much and completed nothing, else the one
  // whose unfinished message and open calls cost most. False where none stands out.
  bool CloseWorst(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t open(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t refused() const { return refused_; }
  uint64_t closed(Reason reason) const { return closed_[static_cast<size_t>(reason)]; }

 private:
  using Shared = std::shared_ptr<Connection>;

  // All references but the one of this class are calls.
  static uint64_t OpenCallsOf(const Shared& connection);
  static bool IsInUse(const Shared& connection);

  void Refresh(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  uint32_t OpenOf(absl::string_view address) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The one to close for a newcomer; of that address, or of any. Null where all are in use.
  Shared FindVictim(std::optional<absl::string_view> address, absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Close(const Shared& connection, Reason reason, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const Shared& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t max_connections_;
  const uint32_t max_per_address_;
  std::atomic<uint64_t> refused_ = 0;
  std::array<std::atomic<uint64_t>, kReasons.size()> closed_ = {};

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Shared> open_ ABSL_GUARDED_BY(mutex_);  // by the peer's name
  absl::flat_hash_map<std::string, uint32_t> open_of_address_ ABSL_GUARDED_BY(mutex_);
  absl::Time refreshed_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time logged_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_CONNECTIONS_H_
