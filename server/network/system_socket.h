// What differs between operating systems in nonblocking sockets. The rest is the same everywhere.
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

// Before the first socket.
void StartSockets();
// Its calls return at once from now on.
void MakeNonblocking(SystemSocket socket);
// Before it is bound: may take its port from connections that linger, and from no other listener.
// One of IPv6 takes connections of IPv4 too.
void PrepareToListen(SystemSocket socket, bool is_v6);
void CloseSocket(SystemSocket socket);

// Bytes moved, 0 at the end of what the peer sends, negative for a failure.
std::ptrdiff_t Receive(SystemSocket socket, char* to, size_t most);
std::ptrdiff_t Send(SystemSocket socket, const char* from, size_t most);
// The peer reads the end of what has been sent.
void EndSending(SystemSocket socket);

// Of the last call of this thread that failed: it would have had to wait; it failed for want of
// descriptors or memory.
bool WouldBlock();
bool LackedResources();

void PollSockets(pollfd* polled, size_t count, int timeout_milliseconds);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_SYSTEM_SOCKET_H_
