#include "server/config/caller_limits.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/config/byte_size.h"

namespace opmill {
namespace {

constexpr double kLeastRate = 1e-3;
constexpr double kMostRate = 1e9;

// Returns why the value cannot be used; empty if it can.
std::string Read(absl::string_view name, absl::string_view value, CallerLimits& limits) {
  if (name == "executions") {
    if (absl::SimpleAtoi(value, &limits.executions) && limits.executions > 0) return "";
    return "executions must be a number of at least 1.";
  }
  if (name == "bytes") {
    ByteSize size;
    std::string error;
    if (!AbslParseFlag(value, &size, &error)) return absl::StrCat("bytes: ", error);
    limits.bytes = size.bytes;
    return size.bytes > 0 ? "" : "bytes must be at least 1.";
  }
  if (name == "rate") {
    absl::ConsumeSuffix(&value, "/s");
    if (absl::SimpleAtod(value, &limits.rate) && limits.rate >= kLeastRate &&
        limits.rate <= kMostRate) {
      return "";
    }
    return "rate must be a number of executions per second, at least 0.001 and at most 1e9, such "
           "as 1000/s.";
  }
  return absl::StrCat("\"", name, "\" is not one of executions, bytes and rate.");
}

}  // namespace

bool AbslParseFlag(absl::string_view text, CallerLimits* limits, std::string* error) {
  CallerLimits read;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    *error =
        Read(absl::StripAsciiWhitespace(pair.first), absl::StripAsciiWhitespace(pair.second), read);
    if (!error->empty()) return false;
  }
  *limits = read;
  return true;
}

std::string AbslUnparseFlag(const CallerLimits& limits) {
  std::vector<std::string> parts;
  if (limits.executions != 0) parts.push_back(absl::StrCat("executions=", limits.executions));
  if (limits.bytes != 0) {
    parts.push_back(absl::StrCat("bytes=", AbslUnparseFlag(ByteSize{limits.bytes})));
  }
  if (limits.rate != 0) parts.push_back(absl::StrCat("rate=", limits.rate, "/s"));
  return absl::StrJoin(parts, ",");
}

}  // namespace opmill
