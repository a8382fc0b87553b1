#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/errors.h"
#include "proto/address.h"
#include "server/listener.h"
#include "server/log.h"

namespace opmill {
namespace {

constexpr rlim_t kOwnDescriptors = 512;  // files, the driver's, gRPC's, the metrics' connections
// A walk over a full house for every connection of a flood would be what the flood wants.
constexpr absl::Duration kLeastBetweenCounts = absl::Milliseconds(5);
constexpr absl::Duration kLeastBetweenLines = absl::Seconds(1);
constexpr int kPauseWithoutDescriptorsMilliseconds = 100;

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Makes room for the connections under the process's limit on open files, as far as it may.
absl::Status CheckDescriptors(uint32_t max_connections) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  const rlim_t wanted = rlim_t{max_connections} + kOwnDescriptors;
  if (limit.rlim_cur >= wanted) return absl::OkStatus();
  const rlimit raised = {.rlim_cur = std::min(wanted, limit.rlim_max), .rlim_max = limit.rlim_max};
  if (raised.rlim_cur == wanted && setrlimit(RLIMIT_NOFILE, &raised) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--max_connections is ", max_connections, "; the process may open ",
                   limit.rlim_max, " files, of which ", kOwnDescriptors,
                   " are for itself. Allow it more (ulimit -n), or fewer "
                   "connections."));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

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
    set(SOL_SOCKET, SO_REUSEADDR, 1);  // of connections that linger; a listener's is refused still
    set(IPPROTO_TCP, TCP_NODELAY, 1);  // as the next, of the connections too
  }
  if (family == AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(descriptor.number(), address, bytes) != 0) return ErrnoStatus("bind");
  if (listen(descriptor.number(), SOMAXCONN) != 0) return ErrnoStatus("listen");
  return descriptor;
}

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

uint32_t PortOf(const Descriptor& descriptor) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof(address);
  getsockname(descriptor.number(), reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// At every address that the name stands for; `port` is set where it was 0. Either family's wildcard
// stands for both.
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
        // A name may stand for addresses of a family that the machine does not have.
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

class HandingListener final : public Listener {
 public:
  HandingListener(uint32_t max_connections,
                  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc)
      : max_connections_(max_connections), to_grpc_(std::move(to_grpc)) {}

  ~HandingListener() override {
    stopping_.reset();  // its other end then reads as closed
    if (thread_.joinable()) thread_.join();
    for (const std::string& path : paths_) unlink(path.c_str());
  }

  absl::Status Listen(const std::vector<std::string>& addresses) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe2");
    stop_.emplace(ends[0]);
    stopping_.emplace(ends[1]);
    std::vector<std::string> failed;
    for (const std::string& address : addresses) {
      if (!Listen(address).ok()) failed.push_back(address);
    }
    return failed.empty() ? absl::OkStatus() : CannotListen(failed);
  }

  absl::Status Start() override {
    thread_ = std::thread([this] { Accept(); });
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

  uint64_t connections() override {
    const std::lock_guard lock(mutex_);
    ForgetClosed();
    return open_.size();
  }
  uint64_t refused_connections() const override { return refused_; }

 private:
  // gRPC closes the descriptor, whose number may then name something else.
  struct Connection {
    int number;
    ino_t inode;
  };

  absl::Status Listen(const std::string& address) {
    absl::string_view path = address;
    if (absl::ConsumePrefix(&path, "unix:")) {
      absl::ConsumePrefix(&path, "//");
      ASSIGN_OR_RETURN(Descriptor socket, ListenAtPath(path));
      paths_.emplace_back(path);
      sockets_.push_back(std::move(socket));
      addresses_.push_back(address);
      return absl::OkStatus();
    }
    const std::string host = address.substr(0, address.rfind(':'));
    uint32_t port = opmill::PortOf(absl::string_view(address)).value_or(0);
    ASSIGN_OR_RETURN(std::vector<Descriptor> sockets, ListenAtHost(host, port));
    for (Descriptor& socket : sockets) sockets_.push_back(std::move(socket));
    addresses_.push_back(absl::StrCat(host, ":", port));
    return absl::OkStatus();
  }

  void Accept() {
    std::vector<pollfd> polled = {{.fd = stop_->number(), .events = POLLIN, .revents = 0}};
    for (const Descriptor& socket : sockets_) {
      polled.push_back({.fd = socket.number(), .events = POLLIN, .revents = 0});
    }
    while (poll(polled.data(), polled.size(), -1) >= 0 || errno == EINTR) {
      if (polled[0].revents != 0) return;
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents == 0) continue;
        if (!AcceptFrom(polled[i].fd)) {  // until some are closed
          if (poll(polled.data(), 1, kPauseWithoutDescriptorsMilliseconds) > 0) return;
        }
      }
    }
  }

  // Until none waits; false where the process, or the system, has no more to give.
  bool AcceptFrom(int socket) {
    for (;;) {
      Descriptor accepted(accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (accepted.number() < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
        continue;  // of that connection alone: it has gone
      }
      if (TakeIn(accepted)) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
        parameters.listener_fd = socket;
        parameters.fd = accepted.Release();
        to_grpc_->HandleNewConnection(&parameters);
      }
    }
  }

  // False past the limit.
  bool TakeIn(const Descriptor& accepted) {
    struct stat status = {};
    if (fstat(accepted.number(), &status) != 0) return false;
    const absl::Time now = absl::Now();
    {
      const std::lock_guard lock(mutex_);
      if (open_.size() >= max_connections_ && now - counted_at_ >= kLeastBetweenCounts) {
        counted_at_ = now;
        ForgetClosed();
      }
      if (open_.size() < max_connections_) {
        open_.push_back({accepted.number(), status.st_ino});
        return true;
      }
    }
    ++refused_;
    if (now - told_at_ >= kLeastBetweenLines) {
      told_at_ = now;
      LogLine(LogLevel::kWarning, "refuse_connections")
          .Add("max_connections", uint64_t{max_connections_})
          .Add("refused", refused_);
    }
    return false;
  }

  // Under the lock.
  void ForgetClosed() {
    std::erase_if(open_, [](const Connection& connection) {
      struct stat status = {};
      return fstat(connection.number, &status) != 0 || !S_ISSOCK(status.st_mode) ||
             status.st_ino != connection.inode;
    });
  }

  const uint32_t max_connections_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc_;
  std::vector<std::string> addresses_;
  std::vector<std::string> paths_;  // of Unix sockets
  std::vector<Descriptor> sockets_;
  std::optional<Descriptor> stop_;
  std::optional<Descriptor> stopping_;

  std::mutex mutex_;
  std::vector<Connection> open_;  // guarded by mutex_; closed ones among them
  std::atomic<uint64_t> refused_ = 0;
  absl::Time counted_at_ = absl::InfinitePast();  // of the thread, as the next
  absl::Time told_at_ = absl::InfinitePast();
  std::thread thread_;  // last: it uses all above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    const std::vector<std::string>& addresses, uint32_t max_connections,
    const MakeCredentials& make_credentials, grpc::ServerBuilder& builder) {
  RETURN_IF_ERROR(CheckDescriptors(max_connections));
  using Acceptor = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto listener = std::make_unique<HandingListener>(
      max_connections,
      builder.experimental().AddExternalConnectionAcceptor(Acceptor::FROM_FD, make_credentials()));
  RETURN_IF_ERROR(listener->Listen(addresses));
  return listener;
}

}  // namespace opmill
