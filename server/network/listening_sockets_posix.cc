#include "server/network/listening_sockets_posix.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opmill {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status ErrnoStatus(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno), "."));
}

absl::StatusOr<Descriptor> ListenAt(int family, const sockaddr* address, socklen_t bytes) {
  Descriptor descriptor(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (descriptor.number() < 0) return ErrnoStatus("socket");
  const auto set = [&](int level, int option, int value) {
    setsockopt(descriptor.number(), level, option, &value, sizeof(value));
  };
  if (family != AF_UNIX) {
    // Reuses a port with lingering connections, but not one with a listener.
    set(SOL_SOCKET, SO_REUSEADDR, 1);
    set(IPPROTO_TCP, TCP_NODELAY, 1);  // accepted connections inherit this and the next option
  }
  if (family == AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(descriptor.number(), address, bytes) != 0) return ErrnoStatus("bind");
  if (listen(descriptor.number(), SOMAXCONN) != 0) return ErrnoStatus("listen");
  return descriptor;
}

uint32_t PortOf(const Descriptor& descriptor) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof(address);
  getsockname(descriptor.number(), reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<Descriptor> ListenAtPath(absl::string_view path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError(
        absl::StrCat("A socket's path has at most ", sizeof(address.sun_path) - 1, " bytes."));
  }
  path.copy(address.sun_path, path.size());
  struct stat found = {};
  if (stat(address.sun_path, &found) == 0 && S_ISSOCK(found.st_mode)) unlink(address.sun_path);
  return ListenAt(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

absl::StatusOr<std::vector<Descriptor>> ListenAtHost(std::string host, uint32_t& port) {
  host = std::string(absl::StripPrefix(absl::StripSuffix(host, "]"), "["));
  std::vector<std::string> hosts = {host};
  if (host == "0.0.0.0" || host == "::") hosts = {"::", "0.0.0.0"};
  std::vector<Descriptor> listening;
  absl::Status status;
  for (const std::string& each : hosts) {
    addrinfo hints = {};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(each.c_str(), absl::StrCat(port).c_str(), &hints, &found);
    if (error != 0) return absl::UnavailableError(gai_strerror(error));
    const AddressInfo owned(found, &freeaddrinfo);
    for (addrinfo* info = found; info != nullptr; info = info->ai_next) {
      if (info->ai_family == AF_INET) {
        reinterpret_cast<sockaddr_in*>(info->ai_addr)->sin_port = htons(port);
      } else {
        reinterpret_cast<sockaddr_in6*>(info->ai_addr)->sin6_port = htons(port);
      }
      absl::StatusOr<Descriptor> socket =
          ListenAt(info->ai_family, info->ai_addr, info->ai_addrlen);
      if (!socket.ok()) {
        // A name may resolve to addresses of a family that the machine does not support.
        if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return socket.status();
        status = socket.status();
        continue;
      }
      port = PortOf(*socket);
      listening.push_back(*std::move(socket));
    }
    if (hosts.size() > 1 && !listening.empty()) break;
  }
  if (listening.empty()) return status;
  return listening;
}

}  // namespace opmill
