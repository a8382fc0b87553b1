#include "server/network/connection_socket_posix.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/network/file_descriptor.h"

namespace opmill {
namespace {

constexpr uint8_t kEstablished = 1;  // TCP states of the kernel
constexpr uint8_t kCloseWait = 8;    // the peer has closed its side; gRPC will close ours

// A duplicate of gRPC's descriptor. It identifies this connection for as long as it is open, while
// gRPC may close its own number at any time and the number may be reused. gRPC shuts a socket down
// before it closes it, so the peer does not notice the duplicate.
class WatchedSocket final : public ConnectionSocket {
 public:
  explicit WatchedSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  std::optional<Traffic> ReadTraffic() override {
    tcp_info info = {};
    socklen_t bytes = sizeof(info);
    if (getsockopt(descriptor_.number(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) {
      // A Unix socket has no traffic counters.
      pollfd polled = {.fd = descriptor_.number(), .events = 0, .revents = 0};
      if (poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0) {
        return std::nullopt;
      }
      return Traffic();
    }
    if (info.tcpi_state != kEstablished && info.tcpi_state != kCloseWait) return std::nullopt;
    return Traffic{.received_bytes = info.tcpi_bytes_received,
                   .answered_bytes = info.tcpi_bytes_acked};
  }

  void Close() override {
    // Resets the connection and drops received data, which gRPC would still read after a mere
    // shutdown.
    const sockaddr unspecified = {.sa_family = AF_UNSPEC, .sa_data = {}};
    connect(descriptor_.number(), &unspecified, sizeof(unspecified));
  }

 private:
  const Descriptor descriptor_;
};

}  // namespace

std::unique_ptr<ConnectionSocket> WatchConnection(int accepted) {
  Descriptor duplicate(fcntl(accepted, F_DUPFD_CLOEXEC, 0));
  if (duplicate.number() < 0) return nullptr;
  return std::make_unique<WatchedSocket>(std::move(duplicate));
}

std::string UnixPeerName(int socket) {
  uint64_t cookie = 0;
  socklen_t bytes = sizeof(cookie);
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) != 0) {
    cookie = static_cast<uint64_t>(socket);  // before Linux 4.12
  }
  return absl::StrCat("unix:", cookie);
}

std::optional<ConnectionPeer> PeerOf(int accepted) {
  sockaddr_storage storage = {};
  socklen_t bytes = sizeof(storage);
  if (getpeername(accepted, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) {
    return std::nullopt;
  }
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return ConnectionPeer{.name = absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port)),
                          .address = text};
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    const uint16_t port = ntohs(v6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
      return ConnectionPeer{.name = absl::StrCat("ipv4:", text, ":", port), .address = text};
    }
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    std::string host = text;
    if (v6.sin6_scope_id != 0) absl::StrAppend(&host, "%", v6.sin6_scope_id);
    return ConnectionPeer{.name = absl::StrCat("ipv6:[", host, "]:", port), .address = host};
  }
  ConnectionPeer peer = {.name = UnixPeerName(accepted), .address = "unix", .is_named = false};
  ucred credentials = {};
  bytes = sizeof(credentials);
  if (getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return std::nullopt;
  if (credentials.uid != geteuid()) peer.user = credentials.uid;
  return peer;
}

}  // namespace opmill
