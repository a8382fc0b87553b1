// Why no connection came about, in words for people.
#ifndef OPMILL_CLIENT_CONNECT_FAILURE_H_
#define OPMILL_CLIENT_CONNECT_FAILURE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

// `error` is gRPC's. The sentence begins with "No server answers at" where none does, with "The
// name" where the target's name has no address, and with "The server at" where a server is there
// and TLS is at fault.
std::string ConnectFailure(absl::string_view target, bool speaks_tls, absl::string_view error);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CONNECT_FAILURE_H_
