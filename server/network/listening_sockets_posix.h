// Creates listening sockets, without gRPC.
#ifndef OPMILL_SERVER_NETWORK_LISTENING_SOCKETS_POSIX_H_
#define OPMILL_SERVER_NETWORK_LISTENING_SOCKETS_POSIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/network/file_descriptor.h"

namespace opmill {

// Listens on a Unix socket. Replaces a socket file that an earlier process has left behind.
absl::StatusOr<Descriptor> ListenAtPath(absl::string_view path);

// Listens on every address that the name resolves to. Sets `port` if it was 0. The wildcard of
// either address family stands for both.
absl::StatusOr<std::vector<Descriptor>> ListenAtHost(std::string host, uint32_t& port);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_LISTENING_SOCKETS_POSIX_H_
