// The operating system's view of an accepted connection that gRPC serves.
#ifndef OPMILL_SERVER_NETWORK_CONNECTION_SOCKET_POSIX_H_
#define OPMILL_SERVER_NETWORK_CONNECTION_SOCKET_POSIX_H_

#include <memory>
#include <optional>
#include <string>

#include "server/network/connections.h"

namespace opmill {

// Watches an accepted socket, which the caller keeps. Null if the process cannot open more files.
std::unique_ptr<ConnectionSocket> WatchConnection(int accepted);

// "unix:12", with a number of the system that no later socket gets, unlike that of the descriptor.
std::string UnixPeerName(int socket);

// The peer of the socket; nullopt if the connection is already gone.
std::optional<ConnectionPeer> PeerOf(int accepted);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_CONNECTION_SOCKET_POSIX_H_
