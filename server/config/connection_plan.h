// How many connections the process has files for.
#ifndef OPMILL_SERVER_CONFIG_CONNECTION_PLAN_H_
#define OPMILL_SERVER_CONFIG_CONNECTION_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/config/options.h"

namespace opmill {

// By default, if the process may open enough files.
constexpr uint32_t kDefaultConnections = 1024;

// The files that a process with so many connections may have open. 0: the default number.
// `serves_http`: there may be as many connections to the HTTP listener.
uint64_t FilesFor(uint32_t max_connections, bool serves_http);

// Sets max_connections if it is 0, to no more than a process that may open `open_files` files can
// serve. Returns InvalidArgument, in terms of the flags, if it may open too few files.
absl::Status LimitConnections(uint64_t open_files, bool serves_http, Limits& limits);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_CONNECTION_PLAN_H_
