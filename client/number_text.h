// Decimal digits of floating-point numbers, as NumPy chooses them.
#ifndef OPMILL_CLIENT_NUMBER_TEXT_H_
#define OPMILL_CLIENT_NUMBER_TEXT_H_

#include <string>

namespace opmill {

// A finite nonnegative number: digits d1 d2 d3 ... with the value 0.d1d2d3... * 10^point.
struct Decimal {
  std::string digits;  // no leading or trailing zeros; empty for zero
  int point = 0;
};

enum class FloatFormat { kFloat32, kFloat16 };

// The fewest digits that identify `value`, and of those the nearest.
Decimal ShortestDecimal(FloatFormat format, float value);
// For PositionalText: the same, but with all digits before the point and at most
// `max_fraction_digits` after it. Exact ties are rounded to even.
Decimal RoundedDecimal(FloatFormat format, float value, int max_fraction_digits);
// The same, but at least `min_digits` digits of the exact value.
Decimal ExtendedDecimal(FloatFormat format, float value, int min_digits);

// "12.5", "0.001", "3.": always with a point.
std::string PositionalText(const Decimal& decimal);
// "1.25e-07", with at least `fraction_digits` after the point and `exponent_digits` in the
// exponent.
std::string ScientificText(const Decimal& decimal, int fraction_digits, int exponent_digits);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NUMBER_TEXT_H_
