#include "server/api/trace_context.h"

#include <algorithm>

namespace opmill {
namespace {

// version-trace_id-parent_id-flags: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
constexpr size_t kTraceId = 3;
constexpr size_t kParentId = 36;
constexpr size_t kFlags = 53;
constexpr size_t kLength = 55;
// Limits newer versions, which may have more fields. The value is logged and returned to the
// caller.
constexpr size_t kMaxLength = 256;

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(absl::string_view text) {
  return IsLowerHex(text) && text.find_first_not_of('0') != absl::string_view::npos;
}

bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

}  // namespace

bool IsTraceparent(absl::string_view value) {
  if (value.size() < kLength || value.size() > kMaxLength || !IsPrintable(value)) return false;
  const absl::string_view version = value.substr(0, 2);
  if (!IsLowerHex(version) || version == "ff") return false;
  if (value.size() > kLength && (version == "00" || value[kLength] != '-')) return false;
  return value[kTraceId - 1] == '-' && IsId(value.substr(kTraceId, 32)) &&
         value[kParentId - 1] == '-' && IsId(value.substr(kParentId, 16)) &&
         value[kFlags - 1] == '-' && IsLowerHex(value.substr(kFlags, 2));
}

}  // namespace opmill
