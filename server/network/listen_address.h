// Addresses to listen at, and which of them may be served in clear text.
#ifndef OPMILL_SERVER_NETWORK_LISTEN_ADDRESS_H_
#define OPMILL_SERVER_NETWORK_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "server/config/options.h"

namespace opmill {

// host:port, or unix:path.
absl::Status CheckAddress(const std::string& address);

// TLS flags that belong together are there together, and what other machines reach is encrypted or
// meant not to be.
absl::Status CheckExposure(const ServerOptions& options);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_LISTEN_ADDRESS_H_
