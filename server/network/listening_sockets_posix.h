// Sockets that listen at an address, before gRPC is concerned.
#ifndef OPMILL_SERVER_NETWORK_LISTENING_SOCKETS_POSIX_H_
#define OPMILL_SERVER_NETWORK_LISTENING_SOCKETS_POSIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/network/file_descriptor.h"

namespace opmill {

// At a Unix socket's path; one that an earlier process has left there is replaced.
absl::StatusOr<Descriptor> ListenAtPath(absl::string_view path);

// At every address that the name stands for; `port` is set where it was 0. Either family's wildcard
// stands for both.
absl::StatusOr<std::vector<Descriptor>> ListenAtHost(std::string host, uint32_t& port);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_LISTENING_SOCKETS_POSIX_H_
