#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"
#include "kernels/base/server_address.h"
#include "kernels/base/steady_time.h"
#include "server/network/connection_socket_posix.h"
#include "server/network/file_descriptor.h"
#include "server/network/listener.h"
#include "server/network/listening_sockets_posix.h"

namespace opmill {
namespace {

constexpr int kPauseWithoutDescriptorsMilliseconds = 100;

class HandingListener final : public Listener {
 public:
  HandingListener(Connections& connections,
                  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc)
      : connections_(connections), to_grpc_(std::move(to_grpc)) {}

  ~HandingListener() override {
    stopping_.reset();  // the other end then reads end-of-file
    if (thread_.joinable()) thread_.join();
    for (const std::string& path : paths_) unlink(path.c_str());
  }

  absl::Status Listen(const std::vector<std::string>& addresses) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return absl::UnavailableError(absl::StrCat("pipe2: ", std::strerror(errno), "."));
    }
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

 private:
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
        if (!AcceptFrom(polled[i].fd)) {  // until some descriptors are closed
          if (poll(polled.data(), 1, kPauseWithoutDescriptorsMilliseconds) > 0) return;
        }
      }
    }
  }

  // Accepts until no connection is waiting. Returns false if the process or the system is out of
  // resources.
  bool AcceptFrom(int socket) {
    for (;;) {
      Descriptor accepted(accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (accepted.number() < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
        continue;  // that connection is already gone
      }
      std::optional<ConnectionPeer> peer = PeerOf(accepted.number());
      if (!peer.has_value()) continue;
      std::unique_ptr<ConnectionSocket> watched = WatchConnection(accepted.number());
      if (watched == nullptr) continue;
      if (!connections_.Admit(*std::move(peer), std::move(watched), SteadyNow())) continue;
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.listener_fd = socket;
      parameters.fd = accepted.Release();
      to_grpc_->HandleNewConnection(&parameters);
    }
  }

  Connections& connections_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc_;
  std::vector<std::string> addresses_;
  std::vector<std::string> paths_;  // of Unix sockets
  std::vector<Descriptor> sockets_;
  std::optional<Descriptor> stop_;
  std::optional<Descriptor> stopping_;
  std::thread thread_;  // declared last: it uses the members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(
    const std::vector<std::string>& addresses, Connections& connections,
    const MakeCredentials& make_credentials, grpc::ServerBuilder& builder) {
  using Acceptor = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto listener = std::make_unique<HandingListener>(
      connections,
      builder.experimental().AddExternalConnectionAcceptor(Acceptor::FROM_FD, make_credentials()));
  RETURN_IF_ERROR(listener->Listen(addresses));
  return listener;
}

}  // namespace opmill
