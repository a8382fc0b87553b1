#include "proto/address.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace opmill {
namespace {

// A name such as 127.evil.example begins like an address and is none.
bool IsIpV4Loopback(absl::string_view host) {
  uint32_t parts = 0;
  for (const absl::string_view part : absl::StrSplit(host, '.')) {
    uint32_t value = 0;
    if (!absl::SimpleAtoi(part, &value) || value > 255 || (parts == 0 && value != 127)) {
      return false;
    }
    ++parts;
  }
  return parts == 4;
}

}  // namespace

std::optional<uint32_t> PortOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == address.npos || colon == 0 || absl::StartsWith(address, "unix:") ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return std::nullopt;
  }
  return port;
}

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || IsIpV4Loopback(host);
}

}  // namespace opmill
