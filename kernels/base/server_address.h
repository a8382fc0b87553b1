// Addresses of servers: host:port and unix:path.
#ifndef OPMILL_KERNELS_BASE_SERVER_ADDRESS_H_
#define OPMILL_KERNELS_BASE_SERVER_ADDRESS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace opmill {

// The port of host:port, 0 to 65535; absent if `address` is malformed.
std::optional<uint32_t> PortOf(absl::string_view address);

// Whether it is on this machine: unix:path, localhost, 127.x.x.x or [::1].
bool IsLoopback(absl::string_view address);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_SERVER_ADDRESS_H_
