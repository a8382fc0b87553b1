// Checks listening addresses, and which of them may use clear text and shared
// memory.
#ifndef OPMILL_SERVER_NETWORK_LISTEN_ADDRESS_H_
#define OPMILL_SERVER_NETWORK_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "server/config/options.h"

namespace opmill {

// host:port, or unix:path.
absl::Status CheckAddress(const std::string& address);

// Checks that TLS flags are complete, and that every address that other machines can reach uses TLS
// or `insecure` is set.
absl::Status CheckExposure(const ServerOptions& options);

// Whether callers may keep tensors in shared memory.
bool AllowsSharedMemory(const ServerOptions& options);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_LISTEN_ADDRESS_H_
