// The operating system's view of an accepted connection that gRPC serves.
#ifndef OPMILL_SERVER_NETWORK_CONNECTION_SOCKET_POSIX_H_
#define OPMILL_SERVER_NETWORK_CONNECTION_SOCKET_POSIX_H_

#include <memory>
#include <optional>

#include "server/network/connections.h"

namespace opmill {

// Of an accepted socket, which stays the caller's. Null where the process may open no more files.
std::unique_ptr<ConnectionSocket> WatchConnection(int accepted);

// Who is at its other end; nullopt where the connection has gone already.
std::optional<ConnectionPeer> PeerOf(int accepted);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_CONNECTION_SOCKET_POSIX_H_
