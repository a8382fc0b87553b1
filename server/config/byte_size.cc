#include "server/config/byte_size.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace opmill {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
constexpr size_t kMostExactDigits = 5;

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};
// In order of preference.
constexpr Unit kUnits[] = {{"TiB", uint64_t{1} << 40},
                           {"GiB", uint64_t{1} << 30},
                           {"MiB", uint64_t{1} << 20},
                           {"KiB", uint64_t{1} << 10},
                           {"TB", 1'000'000'000'000},
                           {"GB", 1'000'000'000},
                           {"MB", 1'000'000},
                           {"kB", 1'000},
                           {"B", 1},
                           {"", 1}};

constexpr absl::string_view kExpected =
    "A size is a number of bytes, or a number with KiB, MiB, GiB, TiB, kB, MB, GB or TB: 64MiB, "
    "1.5GiB.";

bool IsDigits(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error) {
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const absl::string_view number = text.substr(0, end);
  const absl::string_view name = absl::StripLeadingAsciiWhitespace(text.substr(end));
  const auto* const unit = absl::c_find_if(
      kUnits, [name](const Unit& each) { return absl::EqualsIgnoreCase(each.name, name); });
  const size_t point = number.find('.');
  const absl::string_view digits = number.substr(0, point);
  const absl::string_view decimals = point == number.npos ? "0" : number.substr(point + 1);
  double fraction = 0;
  if (unit == std::end(kUnits) || !IsDigits(digits) || !IsDigits(decimals) ||
      !absl::SimpleAtod(absl::StrCat("0.", decimals), &fraction)) {
    *error = std::string(kExpected);
    // Kubernetes writes 1Gi, others 1G.
    const auto* const meant = absl::c_find_if(
        kUnits, [name](const Unit& each) { return absl::StartsWithIgnoreCase(each.name, name); });
    if (unit == std::end(kUnits) && meant != std::end(kUnits) && !number.empty()) {
      absl::StrAppend(error, " Did you mean ", number, meant->name, "?");
    }
    return false;
  }
  const auto rest = static_cast<uint64_t>(fraction * static_cast<double>(unit->bytes));
  uint64_t whole = 0;
  if (!absl::SimpleAtoi(digits, &whole) || whole > (kMost - rest) / unit->bytes) {
    *error = absl::StrCat("The largest size is ", kMost, " bytes.");
    return false;
  }
  size->bytes = whole * unit->bytes + rest;
  return true;
}

std::string AbslUnparseFlag(ByteSize size) {
  if (size.bytes == 0) return "0";
  const auto* const unit =
      absl::c_find_if(kUnits, [size](const Unit& each) { return size.bytes % each.bytes == 0; });
  return absl::StrCat(size.bytes / unit->bytes, unit->bytes == 1 ? "" : unit->name);
}

std::string FormatBytes(uint64_t bytes) {
  std::string exact = AbslUnparseFlag({bytes});
  const size_t digits = std::min(exact.find_first_not_of("0123456789"), exact.size());
  if (digits <= kMostExactDigits) return exact;
  const auto* const unit =
      absl::c_find_if(kUnits, [bytes](const Unit& each) { return bytes >= each.bytes; });
  const double rounded = static_cast<double>(bytes) / static_cast<double>(unit->bytes);
  return absl::StrFormat("%d (%.1f%s)", bytes, rounded, unit->name);
}

}  // namespace opmill
