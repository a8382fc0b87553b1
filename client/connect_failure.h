// Error messages for failed connections.
#ifndef OPMILL_CLIENT_CONNECT_FAILURE_H_
#define OPMILL_CLIENT_CONNECT_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// `error` is gRPC's message. The result begins with "No server answers at" if none does, with "The
// name" if the name cannot be resolved, and with "The server at" if a server answers but TLS fails.
std::string ConnectFailure(absl::string_view target, bool speaks_tls, absl::string_view error);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CONNECT_FAILURE_H_
