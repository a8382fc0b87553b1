#include "server/network/system_socket.h"

namespace opmill {

void StartSockets() {
  WSADATA data;
  WSAStartup(MAKEWORD(2, 2), &data);
}

void MakeNonblocking(SystemSocket socket) {
  u_long on = 1;
  ioctlsocket(socket, FIONBIO, &on);
}

void PrepareToListen(SystemSocket socket, bool is_v6) {
  const auto set = [socket](int level, int option, DWORD value) {
    setsockopt(socket, level, option, reinterpret_cast<const char*>(&value), sizeof(value));
  };
  set(SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1);  // SO_REUSEADDR would allow stealing a listener's port
  if (is_v6) set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
}

void CloseSocket(SystemSocket socket) { closesocket(socket); }

std::ptrdiff_t Receive(SystemSocket socket, char* to, size_t most) {
  return recv(socket, to, static_cast<int>(most), 0);
}

std::ptrdiff_t Send(SystemSocket socket, const char* from, size_t most) {
  return send(socket, from, static_cast<int>(most), 0);
}

void EndSending(SystemSocket socket) { shutdown(socket, SD_SEND); }

bool WouldBlock() { return WSAGetLastError() == WSAEWOULDBLOCK; }

bool LackedResources() {
  const int error = WSAGetLastError();
  return error == WSAEMFILE || error == WSAENOBUFS;
}

void PollSockets(pollfd* polled, size_t count, int timeout_milliseconds) {
  WSAPoll(polled, static_cast<ULONG>(count), timeout_milliseconds);
}

}  // namespace opmill
