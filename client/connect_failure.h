// Explains why a connection failed.
#ifndef OPMILL_CLIENT_CONNECT_FAILURE_H_
#define OPMILL_CLIENT_CONNECT_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// `error` is gRPC's message. The sentence begins with "No server answers at" if there is no server,
// with "The name" if the target's name has no address, and with "The server at" if a server is
// there but TLS fails.
std::string ConnectFailure(absl::string_view target, bool speaks_tls, absl::string_view error);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CONNECT_FAILURE_H_
