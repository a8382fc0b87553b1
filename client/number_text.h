// Floating-point numbers as decimal digits, the way NumPy chooses them.
#ifndef OPMILL_CLIENT_NUMBER_TEXT_H_
#define OPMILL_CLIENT_NUMBER_TEXT_H_

#include <string>

namespace opmill {

// A finite number of 0 or more: digits d1 d2 d3 ... with the value 0.d1d2d3... * 10^point.
struct Decimal {
  std::string digits;  // no zeros at either end; empty for zero
  int point = 0;
};

enum class FloatFormat { kFloat32, kFloat16 };

// The fewest digits that `value` can be read back from, and of those the nearest.
Decimal ShortestDecimal(FloatFormat format, float value);
// For PositionalText: the same, but all digits in front of the point, and no more than
// `max_fraction_digits` behind it. Exact ties are rounded to even.
Decimal RoundedDecimal(FloatFormat format, float value, int max_fraction_digits);
// The same, or more digits of the exact value where it has fewer than `min_digits`.
Decimal ExtendedDecimal(FloatFormat format, float value, int min_digits);

// "12.5", "0.001", "3.": the point is always there.
std::string PositionalText(const Decimal& decimal);
// "1.25e-07" with at least `fraction_digits` behind the point and `exponent_digits` in the
// exponent.
std::string ScientificText(const Decimal& decimal, int fraction_digits, int exponent_digits);

}  // namespace opmill

#endif  // OPMILL_CLIENT_NUMBER_TEXT_H_
