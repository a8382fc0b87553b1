#include "server/http/number_lists.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opmill::json {
namespace {

// Shorter ones are left in the text, among them shapes, also those that are written line by line.
constexpr size_t kLeastBytes = 64;
// Where there are many of these, such as in rows of few columns, the search is not worth its time.
constexpr int kMostShort = 64;
constexpr uint64_t kMostExact = uint64_t{1} << 53;
// Powers of ten that are doubles.
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int64_t kMostPower = 22;
constexpr int64_t kMostDigits = 19;                    // that 64 bits hold
constexpr uint64_t kMostNegative = uint64_t{1} << 63;  // of int64_t
constexpr int64_t kMostExponentDigits = 4;

// No caller knows it, so that none has a placeholder in its text.
absl::string_view Mark() {
  static const std::string& mark = *new std::string(
      absl::StrCat(absl::Hex(absl::Uniform<uint64_t>(absl::BitGen()), absl::kZeroPad16), ":"));
  return mark;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Past the string that begins at `at`.
const char* EndOfString(const char* at, const char* end) {
  for (++at; at < end && *at != '"'; ++at) {
    if (*at == '\\' && end - at > 1) ++at;
  }
  return at < end ? at + 1 : end;
}

// Whether the list behind `at` looks like one of numbers.
bool BeginsWithNumber(const char* at, const char* end) {
  while (at < end && IsBlank(*at)) ++at;
  return at < end && (*at == '-' || IsDigit(*at));
}

// Eight digits at a time: the bytes of a word are added in pairs, these in pairs, and so on.
bool AreDigits(uint64_t text) {
  constexpr uint64_t kZeros = 0x3030303030303030;
  constexpr uint64_t kHigh = 0xF0F0F0F0F0F0F0F0;
  constexpr uint64_t kSixes = 0x0606060606060606;  // carry from '9' + 1 on
  return (text & kHigh) == kZeros && ((text + kSixes) & kHigh) == kZeros;
}
uint64_t ValueOfEight(uint64_t text) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kLowBytes = 0x000000FF000000FF;
  text -= 0x3030303030303030;
  text = text * 10 + (text >> 8);
  const uint64_t high = (text & kLowBytes) * 0x000F424000000064;
  const uint64_t low = ((text >> 16) & kLowBytes) * 0x0000271000000001;
  return (high + low) >> 32;
}

struct Digits {
  uint64_t value = 0;  // if there are no more than kMostDigits
  int64_t count = 0;
  // Returns what is behind the digits.
  const char* Read(const char* at, const char* end) {
    const char* const begin = at;
    while (end - at >= 8) {
      uint64_t text = 0;
      std::memcpy(&text, at, sizeof(text));
      if (!AreDigits(text)) break;
      value = value * 100'000'000 + ValueOfEight(text);
      at += 8;
    }
    for (; at < end && IsDigit(*at); ++at) value = value * 10 + static_cast<uint64_t>(*at - '0');
    count += at - begin;
    return at;
  }
};

}  // namespace

std::string NumberLists::TakeFrom(absl::string_view text) {
  std::string rest;
  const char* const end = text.data() + text.size();
  const char* copied = text.data();  // until there
  const char* at = copied;
  int short_lists = 0;
  while (at < end) {
    if (*at == '"') {
      at = EndOfString(at, end);
      continue;
    }
    const char* const begin = at++;
    if (*begin != '[' || !BeginsWithNumber(at, end)) continue;
    const auto* const last =
        static_cast<const char*>(std::memchr(at, ']', static_cast<size_t>(end - at)));
    if (last == nullptr) break;  // not to search the rest again for each bracket
    if (static_cast<size_t>(last - begin) < kLeastBytes) {
      if (++short_lists == kMostShort) break;
      continue;
    }
    rest.append(copied, begin);
    absl::StrAppend(&rest, "\"", Mark(), lists_.size(), "\"");
    lists_.emplace_back(begin + 1, static_cast<size_t>(last - begin - 1));
    copied = at = last + 1;
  }
  if (!lists_.empty()) rest.append(copied, end);
  return rest;
}

std::optional<absl::string_view> NumberLists::Find(absl::string_view placeholder) {
  uint64_t index = 0;
  if (!absl::ConsumePrefix(&placeholder, Mark()) || !absl::SimpleAtoi(placeholder, &index) ||
      index >= lists_.size()) {
    return std::nullopt;
  }
  ++found_;
  return lists_[index];
}

const char* Number::Read(const char* at, const char* end) {
  const char* const begin = at;
  is_negative_ = at < end && *at == '-';
  at += is_negative_ ? 1 : 0;
  const double sign = is_negative_ ? -1 : 1;
  const char* const first = at;
  Digits digits;
  at = digits.Read(at, end);
  if (at == first || (*first == '0' && at - first > 1)) return nullptr;
  is_integer_ = true;
  int64_t power = 0;
  if (at < end && *at == '.') {
    const char* const fraction = ++at;
    at = digits.Read(at, end);
    power = fraction - at;
    if (power == 0) return nullptr;
    is_integer_ = false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    const bool is_small = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    Digits exponent;
    at = exponent.Read(at, end);
    if (exponent.count == 0 || exponent.count > kMostExponentDigits) return nullptr;
    const auto shift = static_cast<int64_t>(exponent.value);
    power += is_small ? -shift : shift;
    is_integer_ = false;
  }
  if (is_integer_) {
    magnitude_ = digits.value;
    value_ = sign * static_cast<double>(magnitude_) + 0.0;  // -0 is an integer, and so 0
    const bool is_held = !is_negative_ || magnitude_ <= kMostNegative;
    return digits.count <= kMostDigits && is_held ? at : nullptr;
  }
  if (digits.count <= kMostDigits && digits.value <= kMostExact && std::abs(power) <= kMostPower) {
    // Both are exact, so that the result is rounded once.
    const double value = sign * static_cast<double>(digits.value);
    const double scale = kPowers[std::abs(power)];
    value_ = power < 0 ? value / scale : value * scale;
    return at;
  }
  const std::from_chars_result read = std::from_chars(begin, at, value_);
  return read.ec == std::errc() && read.ptr == at ? at : nullptr;
}

simdjson::error_code Number::get(int64_t& to) const {
  if (!is_integer_) return simdjson::INCORRECT_TYPE;
  if (!is_negative_ && magnitude_ >= kMostNegative) return simdjson::NUMBER_OUT_OF_RANGE;
  to = static_cast<int64_t>(is_negative_ ? 0 - magnitude_ : magnitude_);
  return simdjson::SUCCESS;
}

simdjson::error_code Number::get(uint64_t& to) const {
  if (!is_integer_) return simdjson::INCORRECT_TYPE;
  if (is_negative_ && magnitude_ != 0) return simdjson::NUMBER_OUT_OF_RANGE;
  to = magnitude_;
  return simdjson::SUCCESS;
}

}  // namespace opmill::json
