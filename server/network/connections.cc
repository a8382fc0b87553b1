#include "server/network/connections.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "server/network/call_budget.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

// gRPC lets a caller send up to 1 MiB of each call's message before it answers.
constexpr uint64_t kUnansweredBytes = uint64_t{2} << 20;
constexpr uint64_t kUnansweredBytesPerCall = uint64_t{5} << 18;
constexpr uint64_t kMostUnansweredBytes = uint64_t{64} << 20;
// The limit for all connections without calls together.
constexpr uint64_t kMostUnansweredWithoutCalls = uint64_t{4} << 20;
// More than a request needs to send before its call is known.
constexpr uint64_t kIncompleteBytes = uint64_t{128} << 10;
constexpr absl::Duration kMostIncomplete = absl::Seconds(5);
// Enforced while more than three quarters of the slots are taken.
constexpr absl::Duration kFirstRequest = absl::Seconds(10);
// A client between two calls keeps its connection for this time.
constexpr absl::Duration kIdle = absl::Seconds(10);
// The least excess for which a connection is closed when memory is short.
constexpr uint64_t kMuchBytes = uint64_t{1} << 20;
// Refreshing all connections for each new one would amplify a flood of connections.
constexpr absl::Duration kLeastBetweenRefreshes = absl::Milliseconds(5);
constexpr absl::Duration kLeastBetweenLines = absl::Seconds(1);

}  // namespace

std::string WithoutPercentEncoding(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_encoded = text[i] == '%' && i + 2 < text.size() &&
                            absl::ascii_isxdigit(text[i + 1]) && absl::ascii_isxdigit(text[i + 2]);
    if (is_encoded) {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

uint64_t Connections::OpenCallsOf(const Shared& connection) {
  return static_cast<uint64_t>(connection.use_count() - 1);
}

bool Connections::IsInUse(const Shared& connection) {
  return OpenCallsOf(connection) > 0 || !connection->peer_.is_named;
}

absl::string_view Connections::NameOf(Reason reason) {
  switch (reason) {
    case Reason::kFlood:
      return "flood";
    case Reason::kIncomplete:
      return "incomplete";
    case Reason::kNoRequest:
      return "no_request";
    case Reason::kRoom:
      return "room";
    case Reason::kMemory:
      return "memory";
    case Reason::kMetadata:
      return "metadata";
    case Reason::kCalls:
      return "calls";
    case Reason::kAbandoned:
      return "abandoned";
    case Reason::kControl:
      return "control";
  }
  return "unknown";
}

bool Connections::Admit(ConnectionPeer peer, std::unique_ptr<ConnectionSocket> socket,
                        absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  // A peer's name is reused only after its earlier connection has closed.
  if (const auto earlier = open_.find(peer.name); earlier != open_.end()) {
    Forget(Shared(earlier->second));
  }
  const bool is_full = !HasRoom() || OpenOf(peer.address) >= max_per_address_;
  if (is_full && now - refreshed_at_ >= kLeastBetweenRefreshes) Refresh(now);
  std::optional<absl::string_view> among;
  if (OpenOf(peer.address) >= max_per_address_) among = peer.address;
  if (among.has_value() || !HasRoom()) {
    const Shared victim = FindVictim(among, now);
    if (victim == nullptr) {
      ++refused_;
      if (now - logged_at_ >= kLeastBetweenLines) {
        logged_at_ = now;
        LogLine(LogLevel::kWarning, "refuse_connections")
            .Add("peer", peer.name)
            .Add("max_connections", uint64_t{max_connections_})
            .Add("max_connections_per_address", uint64_t{max_per_address_})
            .Add("refused", refused_);
      }
      return false;
    }
    Close(victim, Reason::kRoom, now);
  }
  if (peer.user.has_value()) {
    has_several_unix_users_ =
        has_several_unix_users_ || unix_user_.value_or(*peer.user) != *peer.user;
    unix_user_ = peer.user;
  }
  ++open_of_address_[peer.address];
  std::string name = peer.name;
  open_[std::move(name)] = Shared(new Connection(std::move(peer), std::move(socket), now));
  return true;
}

std::shared_ptr<Connection> Connections::Find(absl::string_view grpc_peer) {
  const std::string name = WithoutPercentEncoding(grpc_peer);
  const absl::MutexLock lock(&mutex_);
  const auto found = open_.find(name);
  if (found == open_.end()) return nullptr;
  found->second->has_called_ = true;
  return found->second;
}

std::optional<uint32_t> Connections::UnixUser() const {
  const absl::MutexLock lock(&mutex_);
  return has_several_unix_users_ ? std::nullopt : unix_user_;
}

void Connections::Check(absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  Refresh(now);
  const bool is_short = open_.size() > max_connections_ - max_connections_ / 4;
  std::vector<std::pair<Shared, Reason>> to_close;
  uint64_t unanswered_without_calls = 0;
  for (const auto& [name, connection] : open_) {
    const uint64_t unanswered = connection->unanswered_bytes();
    const uint64_t allowed = kUnansweredBytes + kUnansweredBytesPerCall * OpenCallsOf(connection);
    if (unanswered > std::min(allowed, kMostUnansweredBytes)) {
      to_close.emplace_back(connection, Reason::kFlood);
    } else if (unanswered > kIncompleteBytes && !IsInUse(connection)) {
      unanswered_without_calls += unanswered;
      if (unanswered_without_calls > kMostUnansweredWithoutCalls) {
        to_close.emplace_back(connection, Reason::kFlood);
      } else if (now - connection->answered_at_ >= kMostIncomplete) {
        to_close.emplace_back(connection, Reason::kIncomplete);
      }
    } else if (is_short && !connection->has_called_ && connection->peer_.is_named &&
               now - connection->accepted_at_ >= kFirstRequest) {
      to_close.emplace_back(connection, Reason::kNoRequest);
    }
  }
  for (const auto& [connection, reason] : to_close) Close(connection, reason, now);
}

bool Connections::CloseWorst(absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  Refresh(now);
  std::vector<Shared> incomplete;
  for (const auto& [name, connection] : open_) {
    if (connection->unanswered_bytes() > kIncompleteBytes && !IsInUse(connection)) {
      incomplete.push_back(connection);
    }
  }
  for (const Shared& connection : incomplete) Close(connection, Reason::kMemory, now);
  if (!incomplete.empty()) return true;
  auto worst = open_.end();  // no copy, which would count as a call
  std::pair<uint64_t, uint64_t> most;
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    const Connection& connection = *at->second;
    const uint64_t cost =
        connection.overhead_bytes() + CallBudget::kBytesOfCall * OpenCallsOf(at->second);
    const std::pair badness(connection.unanswered_bytes() / kMuchBytes, cost);
    if (cost < kMuchBytes || (worst != open_.end() && badness <= most)) continue;
    worst = at;
    most = badness;
  }
  if (worst == open_.end()) return false;
  Close(Shared(worst->second), Reason::kMemory, now);
  return true;
}

void Connections::Close(const std::string& peer, Reason reason, absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  const auto found = open_.find(peer);
  if (found != open_.end()) Close(Shared(found->second), reason, now);
}

uint64_t Connections::open(absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  Refresh(now);
  return open_.size();
}

void Connections::Refresh(absl::Time now) {
  refreshed_at_ = now;
  std::vector<Shared> closed;
  for (const auto& [name, connection] : open_) {
    const std::optional<ConnectionSocket::Traffic> traffic = connection->socket_->ReadTraffic();
    if (!traffic.has_value()) {
      closed.push_back(connection);
      continue;
    }
    if (traffic->answered_bytes != connection->traffic_.answered_bytes) {
      connection->received_at_answer_ = traffic->received_bytes;
      connection->answered_at_ = now;
    }
    const uint64_t payload = connection->payload_bytes_.load(std::memory_order_relaxed);
    if (payload != connection->seen_payload_bytes_) {
      connection->seen_payload_bytes_ = payload;
      connection->received_at_message_ = traffic->received_bytes;
    }
    if (traffic->received_bytes != connection->traffic_.received_bytes) {
      connection->last_received_nanos_.store(absl::ToUnixNanos(now), std::memory_order_relaxed);
    }
    connection->traffic_ = *traffic;
    if (IsInUse(connection)) connection->last_used_at_ = now;
  }
  for (const Shared& connection : closed) Forget(connection);
}

bool Connections::HasRoom() const { return open_.size() < max_connections_; }

uint32_t Connections::OpenOf(absl::string_view address) const {
  const auto found = open_of_address_.find(address);
  return found == open_of_address_.end() ? 0 : found->second;
}

Connections::Shared Connections::FindVictim(std::optional<absl::string_view> address,
                                            absl::Time now) const {
  absl::flat_hash_map<absl::string_view, uint32_t> without_request;  // by address
  Shared idle;
  for (const auto& [name, connection] : open_) {
    if (IsInUse(connection)) continue;
    if (address.has_value() && connection->peer_.address != *address) continue;
    if (!connection->has_called_) {
      ++without_request[connection->peer_.address];
    } else if (now - connection->last_used_at_ >= kIdle &&
               (idle == nullptr || connection->last_used_at_ < idle->last_used_at_)) {
      idle = connection;
    }
  }
  if (without_request.empty()) return idle;
  const absl::string_view most =
      std::max_element(without_request.begin(), without_request.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; })
          ->first;
  Shared oldest;
  for (const auto& [name, connection] : open_) {
    if (connection->has_called_ || IsInUse(connection)) continue;
    if (connection->peer_.address != most) continue;
    if (oldest == nullptr || connection->accepted_at_ < oldest->accepted_at_) oldest = connection;
  }
  return oldest;
}

void Connections::Close(const Shared& connection, Reason reason, absl::Time now) {
  connection->socket_->Close();
  ++closed_[static_cast<size_t>(reason)];
  const bool is_of_many = reason == Reason::kRoom || reason == Reason::kNoRequest ||
                          reason == Reason::kCalls || reason == Reason::kAbandoned ||
                          reason == Reason::kControl;
  if (!is_of_many || now - logged_at_ >= kLeastBetweenLines) {
    if (is_of_many) logged_at_ = now;
    LogLine(LogLevel::kWarning, "close_connection")
        .Add("peer", connection->peer_.name)
        .Add("reason", NameOf(reason))
        .Add("received_bytes", connection->traffic_.received_bytes)
        .Add("unanswered_bytes", connection->unanswered_bytes())
        .Add("open", now - connection->accepted_at_);
  }
  Forget(connection);
}

void Connections::Forget(const Shared& connection) {
  const auto count = open_of_address_.find(connection->peer_.address);
  if (--count->second == 0) open_of_address_.erase(count);
  const std::string name = connection->peer_.name;
  open_.erase(name);
}

}  // namespace opmill
