#include "server/traces/trace_context.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

// version-trace_id-parent_id-flags: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
constexpr size_t kTraceId = 3;
constexpr size_t kParentId = 36;
constexpr size_t kFlags = 53;
constexpr size_t kLength = 55;
constexpr size_t kDigits = 16;  // of 64 bits
constexpr uint64_t kSampled = 1;
// Limits newer versions, which may have more fields. The value is logged and returned to the
// caller.
constexpr size_t kMaxLength = 256;

// Lower-case digits only.
std::optional<uint64_t> ReadHex(absl::string_view text) {
  uint64_t value = 0;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

absl::BitGen& Generator() {
  thread_local absl::BitGen generator;
  return generator;
}

}  // namespace

std::optional<TraceContext> ReadTraceparent(absl::string_view value) {
  if (value.size() < kLength || value.size() > kMaxLength || !IsPrintable(value)) {
    return std::nullopt;
  }
  const absl::string_view version = value.substr(0, kTraceId - 1);
  if (!ReadHex(version).has_value() || version == "ff") return std::nullopt;
  if (value.size() > kLength && (version == "00" || value[kLength] != '-')) return std::nullopt;
  for (const size_t field : {kTraceId, kParentId, kFlags}) {
    if (value[field - 1] != '-') return std::nullopt;
  }
  const std::optional<uint64_t> high = ReadHex(value.substr(kTraceId, kDigits));
  const std::optional<uint64_t> low = ReadHex(value.substr(kTraceId + kDigits, kDigits));
  const std::optional<uint64_t> span = ReadHex(value.substr(kParentId, kDigits));
  const std::optional<uint64_t> flags = ReadHex(value.substr(kFlags, kLength - kFlags));
  if (!high.has_value() || !low.has_value() || !flags.has_value()) return std::nullopt;
  if ((*high | *low) == 0 || span.value_or(0) == 0) return std::nullopt;
  return TraceContext{*high, *low, *span, (*flags & kSampled) != 0};
}

std::string TraceparentOf(const TraceContext& context) {
  return absl::StrCat("00-", absl::Hex(context.trace_high, absl::kZeroPad16),
                      absl::Hex(context.trace_low, absl::kZeroPad16), "-",
                      absl::Hex(context.span, absl::kZeroPad16),
                      context.is_sampled ? "-01" : "-00");
}

uint64_t NewSpanId() {
  return absl::Uniform<uint64_t>(absl::IntervalClosed, Generator(), 1, UINT64_MAX);
}

TraceContext NewTrace() {
  return {.trace_high = NewSpanId(), .trace_low = NewSpanId(), .is_sampled = true};
}

bool Happens(double probability) { return absl::Bernoulli(Generator(), probability); }

}  // namespace opmill
