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
    uint64_t received_bytes = 0;  // received by this machine, even if gRPC has not read them yet
    uint64_t answered_bytes = 0;  // sent and acknowledged by the peer
  };

  virtual ~ConnectionSocket() = default;
  virtual std::optional<Traffic> ReadTraffic() = 0;  // nullopt once closed
  // Closes both directions, and drops bytes that gRPC has not read yet.
  virtual void Close() = 0;
};

struct ConnectionPeer {
  std::string name;     // gRPC's name, without percent encoding: "ipv4:10.0.0.7:51342"
  std::string address;  // shared by all connections from the same host: "10.0.0.7"
  // Whether gRPC reports this name for a call. For a Unix socket it does not, so the server cannot
  // know which of these connections are in use.
  bool is_named = true;
  // The user of the process at the other end of a Unix socket, if it is not the server's.
  std::optional<uint32_t> user = {};
};

// gRPC writes "ipv6:%5B::1%5D:51342".
std::string WithoutPercentEncoding(absl::string_view text);

// One open connection. Each call in progress holds a reference to it, so the reference count gives
// the number of open calls.
class Connection {
 public:
  // Adds the payload of a message that has arrived completely.
  void AddPayload(uint64_t bytes) { payload_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // When bytes were last received, for any call.
  absl::Time last_received_at() const {
    return absl::FromUnixNanos(last_received_nanos_.load(std::memory_order_relaxed));
  }

 private:
  friend class Connections;
  Connection(ConnectionPeer peer, std::unique_ptr<ConnectionSocket> socket, absl::Time now)
      : peer_(std::move(peer)), socket_(std::move(socket)), accepted_at_(now) {}

  uint64_t unanswered_bytes() const { return traffic_.received_bytes - received_at_answer_; }
  // The bytes received since the last complete message.
  uint64_t overhead_bytes() const { return traffic_.received_bytes - received_at_message_; }

  const ConnectionPeer peer_;
  const std::unique_ptr<ConnectionSocket> socket_;
  const absl::Time accepted_at_;
  std::atomic<uint64_t> payload_bytes_ = 0;
  std::atomic<int64_t> last_received_nanos_ = absl::ToUnixNanos(accepted_at_);
  // The members below are guarded by the mutex of Connections.
  bool has_called_ = false;  // one of its calls has passed access control
  ConnectionSocket::Traffic traffic_;
  uint64_t received_at_answer_ = 0;         // received_bytes at the last answer
  uint64_t received_at_message_ = 0;        // received_bytes at the last complete message
  uint64_t seen_payload_bytes_ = 0;         // payload_bytes_ at that time
  absl::Time answered_at_ = accepted_at_;   // the last answer
  absl::Time last_used_at_ = accepted_at_;  // when a call was last seen in progress
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
  enum class Reason {
    kFlood,
    kIncomplete,
    kNoRequest,
    kRoom,
    kMemory,
    // For server/network/transport_rules.h:
    kMetadata,
    kCalls,
    kAbandoned,
    kControl
  };
  static constexpr std::array kReasons = {Reason::kFlood, Reason::kIncomplete, Reason::kNoRequest,
                                          Reason::kRoom,  Reason::kMemory,     Reason::kMetadata,
                                          Reason::kCalls, Reason::kAbandoned,  Reason::kControl};
  static absl::string_view NameOf(Reason reason);

  explicit Connections(const Limits& limits)
      : max_connections_(limits.max_connections),
        max_per_address_(limits.connections_per_address()) {}

  uint32_t max_connections() const { return max_connections_; }

  // Registers an accepted connection. If there is no slot for it, closes another one: the oldest
  // that has made no request, from the address with the most of these; otherwise the one that has
  // been idle longest. Returns false if all connections are in use; the caller must then close the
  // new one.
  bool Admit(ConnectionPeer peer, std::unique_ptr<ConnectionSocket> socket, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Finds the connection of a call that has passed access control, by gRPC's name for the peer.
  // Null if the listener does not register connections on this system (server/network/listener.h).
  std::shared_ptr<Connection> Find(absl::string_view grpc_peer) ABSL_LOCKS_EXCLUDED(mutex_);

  // The user of all peers that have connected over Unix sockets, apart from the server's. Nullopt
  // if there are none or several: gRPC does not say which of these connections a call uses.
  std::optional<uint32_t> UnixUser() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes connections that flood the server or, while slots are scarce, make no request. Must be
  // called several times a second.
  void Check(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // For use while memory is short. Closes connections that have sent much but completed no message.
  // If there are none, closes the one whose incomplete message and open calls use the most memory.
  // Returns false if no connection qualifies.
  bool CloseWorst(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes a connection by the name of its peer, if it is open.
  void Close(const std::string& peer, Reason reason, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t open(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t refused() const { return refused_; }
  uint64_t closed(Reason reason) const { return closed_[static_cast<size_t>(reason)]; }

 private:
  using Shared = std::shared_ptr<Connection>;

  // Every reference except the one in open_ belongs to a call.
  static uint64_t OpenCallsOf(const Shared& connection);
  static bool IsInUse(const Shared& connection);

  void Refresh(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  uint32_t OpenOf(absl::string_view address) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The connection to close for a new one, from `address` or from any address. Null if all are in
  // use.
  Shared FindVictim(std::optional<absl::string_view> address, absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Close(const Shared& connection, Reason reason, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const Shared& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t max_connections_;
  const uint32_t max_per_address_;
  std::atomic<uint64_t> refused_ = 0;
  std::array<std::atomic<uint64_t>, kReasons.size()> closed_ = {};

  mutable absl::Mutex mutex_;
  std::optional<uint32_t> unix_user_ ABSL_GUARDED_BY(mutex_);
  bool has_several_unix_users_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, Shared> open_ ABSL_GUARDED_BY(mutex_);  // by the peer's name
  absl::flat_hash_map<std::string, uint32_t> open_of_address_ ABSL_GUARDED_BY(mutex_);
  absl::Time refreshed_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time logged_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_CONNECTIONS_H_
