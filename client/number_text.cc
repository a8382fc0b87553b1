#include "client/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/base/half.h"

namespace opmill {
namespace {

// "1.25e-07" -> digits 125, point -6
Decimal FromScientific(const std::string& text) {
  Decimal decimal;
  const size_t e = text.find('e');
  for (const char c : text.substr(0, e)) {
    if (c != '.') decimal.digits.push_back(c);
  }
  decimal.point = std::atoi(text.c_str() + e + 1) + 1;
  while (!decimal.digits.empty() && decimal.digits.back() == '0') decimal.digits.pop_back();
  return decimal;
}

double RoundToHalf(double value) { return HalfToFloat(FloatToHalf(value)); }

// 5 digits always identify a half, which has 11 bits. At a power of two, where values below are
// twice as dense, the nearest decimal of fewer digits may fail while its neighbour succeeds.
Decimal ShortestOfHalf(float value) {
  for (int digits = 1; digits < 5; ++digits) {
    const std::string nearest = absl::StrFormat("%.*e", digits - 1, value);
    if (RoundToHalf(std::strtod(nearest.c_str(), nullptr)) == value) return FromScientific(nearest);
    const double step = std::pow(10.0, std::floor(std::log10(value)) - (digits - 1));
    for (const double other : {value + step, value - step}) {
      const std::string text = absl::StrFormat("%.*e", digits - 1, other);
      const double read = std::strtod(text.c_str(), nullptr);
      if (read > 0 && RoundToHalf(read) == value) return FromScientific(text);
    }
  }
  return FromScientific(absl::StrFormat("%.4e", value));
}

}  // namespace

Decimal ShortestDecimal(FloatFormat format, float value) {
  if (value == 0) return {};
  if (format == FloatFormat::kFloat16) return ShortestOfHalf(value);
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  return FromScientific(std::string(buffer, end.ptr));
}

Decimal RoundedDecimal(FloatFormat format, float value, int max_fraction_digits) {
  Decimal shortest = ShortestDecimal(format, value);
  const int fraction_digits = static_cast<int>(shortest.digits.size()) - shortest.point;
  if (fraction_digits >= 0 && fraction_digits <= max_fraction_digits) return shortest;
  // The library rounds the exact value once.
  std::string fixed = absl::StrFormat("%.*f", fraction_digits < 0 ? 0 : max_fraction_digits, value);
  if (fraction_digits < 0) fixed += '.';
  const size_t point = fixed.find('.');
  Decimal decimal{fixed.substr(0, point) + fixed.substr(point + 1), static_cast<int>(point)};
  const size_t first = std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
  decimal.digits.erase(0, first);
  decimal.point -= static_cast<int>(first);
  while (!decimal.digits.empty() && decimal.digits.back() == '0') decimal.digits.pop_back();
  if (decimal.digits.empty()) decimal.point = 0;
  return decimal;
}

Decimal ExtendedDecimal(FloatFormat format, float value, int min_digits) {
  Decimal shortest = ShortestDecimal(format, value);
  if (value == 0 || static_cast<int>(shortest.digits.size()) >= min_digits) return shortest;
  return FromScientific(absl::StrFormat("%.*e", min_digits - 1, value));
}

std::string PositionalText(const Decimal& decimal) {
  if (decimal.digits.empty()) return "0.";
  const int count = static_cast<int>(decimal.digits.size());
  if (decimal.point <= 0) {
    return absl::StrCat("0.", std::string(static_cast<size_t>(-decimal.point), '0'),
                        decimal.digits);
  }
  if (decimal.point >= count) {
    return absl::StrCat(decimal.digits,
                        std::string(static_cast<size_t>(decimal.point - count), '0'), ".");
  }
  const size_t point = static_cast<size_t>(decimal.point);
  return absl::StrCat(decimal.digits.substr(0, point), ".", decimal.digits.substr(point));
}

std::string ScientificText(const Decimal& decimal, int fraction_digits, int exponent_digits) {
  const bool is_zero = decimal.digits.empty();
  std::string fraction = is_zero ? "" : decimal.digits.substr(1);
  fraction.resize(std::max(fraction.size(), static_cast<size_t>(fraction_digits)), '0');
  const int exponent = is_zero ? 0 : decimal.point - 1;
  return absl::StrFormat("%c.%se%c%0*d", is_zero ? '0' : decimal.digits[0], fraction,
                         exponent < 0 ? '-' : '+', exponent_digits, std::abs(exponent));
}

}  // namespace opmill
