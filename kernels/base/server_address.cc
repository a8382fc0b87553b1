#include "kernels/base/server_address.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace opmill {
namespace {

// Decimal digits only: some parsers read 0127 as octal, and stop at a blank.
std::optional<uint32_t> NumberOf(absl::string_view text, uint32_t most) {
  uint32_t value = 0;
  if (text.empty() || !absl::c_all_of(text, absl::ascii_isdigit) ||
      (text[0] == '0' && text != "0") || !absl::SimpleAtoi(text, &value) || value > most) {
    return std::nullopt;
  }
  return value;
}

// 127.evil.example begins like an address, but is a name.
bool IsIpV4Loopback(absl::string_view host) {
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         absl::c_all_of(parts,
                        [](absl::string_view part) { return NumberOf(part, 255).has_value(); });
}

}  // namespace

std::optional<uint32_t> PortOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || absl::StartsWith(address, "unix:")) {
    return std::nullopt;
  }
  return NumberOf(address.substr(colon + 1), 65535);
}

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || IsIpV4Loopback(host);
}

}  // namespace opmill
