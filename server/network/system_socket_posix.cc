#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "server/network/system_socket.h"

namespace opmill {

void StartSockets() {}

void MakeNonblocking(SystemSocket socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
}

void PrepareToListen(SystemSocket socket, bool is_v6) {
  const int on = 1, off = 0;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (is_v6) setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
}

void CloseSocket(SystemSocket socket) { close(socket); }

std::ptrdiff_t Receive(SystemSocket socket, char* to, size_t most) {
  return recv(socket, to, most, 0);
}

std::ptrdiff_t Send(SystemSocket socket, const char* from, size_t most) {
  return send(socket, from, most, MSG_NOSIGNAL);
}

void EndSending(SystemSocket socket) { shutdown(socket, SHUT_WR); }

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

bool LackedResources() {
  return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

void PollSockets(pollfd* polled, size_t count, int timeout_milliseconds) {
  poll(polled, static_cast<nfds_t>(count), timeout_milliseconds);
}

}  // namespace opmill
