// A thin layer over nonblocking sockets that hides the differences between POSIX and Windows.
#ifndef OPMILL_SERVER_NETWORK_SYSTEM_SOCKET_H_
#define OPMILL_SERVER_NETWORK_SYSTEM_SOCKET_H_

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#endif

#include <cstddef>

namespace opmill {

#ifdef _WIN32
using SystemSocket = SOCKET;
constexpr SystemSocket kNoSocket = INVALID_SOCKET;
#else
using SystemSocket = int;
constexpr SystemSocket kNoSocket = -1;
#endif

// Must be called before the first socket is created.
void StartSockets();
// Makes calls on the socket return immediately.
void MakeNonblocking(SystemSocket socket);
// Must be called before bind. Allows the port to be reused while old connections linger, but not
// while another listener uses it. An IPv6 socket accepts IPv4 connections too.
void PrepareToListen(SystemSocket socket, bool is_v6);
void CloseSocket(SystemSocket socket);

// Return the number of bytes transferred, 0 at the end of the peer's data, or a negative value on
// failure.
std::ptrdiff_t Receive(SystemSocket socket, char* to, size_t most);
std::ptrdiff_t Send(SystemSocket socket, const char* from, size_t most);
// Half-closes the connection: the peer sees the end of the data.
void EndSending(SystemSocket socket);

// Why the last call on this thread failed: it would have blocked; or descriptors or memory were
// exhausted.
bool WouldBlock();
bool LackedResources();

void PollSockets(pollfd* polled, size_t count, int timeout_milliseconds);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_SYSTEM_SOCKET_H_
