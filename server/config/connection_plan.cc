#include "server/config/connection_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

constexpr uint64_t kOwnFiles = 512;  // files, driver, gRPC and the HTTP endpoint
// gRPC's own and our duplicate; and one of the HTTP listener.
uint64_t FilesPerConnection(bool serves_http) { return serves_http ? 3 : 2; }

constexpr uint32_t kFewestByDefault = 16;

}  // namespace

uint64_t FilesFor(uint32_t max_connections, bool serves_http) {
  const uint64_t connections = max_connections != 0 ? max_connections : kDefaultConnections;
  return kOwnFiles + FilesPerConnection(serves_http) * connections;
}

absl::Status LimitConnections(uint64_t open_files, bool serves_http, Limits& limits) {
  const bool is_default = limits.max_connections == 0;
  if (open_files < FilesFor(is_default ? kFewestByDefault : limits.max_connections, serves_http)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_connections is ",
                     is_default ? absl::StrCat("at least ", kFewestByDefault, " by default")
                                : absl::StrCat(limits.max_connections),
                     "; the process may open ", open_files, " files, of which ", kOwnFiles,
                     " are for itself and each connection takes ", FilesPerConnection(serves_http),
                     ". Allow it more (ulimit -n), or fewer connections."));
  }
  if (is_default) {
    limits.max_connections = static_cast<uint32_t>(std::min<uint64_t>(
        kDefaultConnections, (open_files - kOwnFiles) / FilesPerConnection(serves_http)));
  }
  return absl::OkStatus();
}

}  // namespace opmill
