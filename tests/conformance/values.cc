#include "tests/conformance/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/conformance/random.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

constexpr std::array<absl::string_view, kValuePatternCount> kNames = {
    "ties",       "small_integers", "numbers",         "positive",          "random_bits",
    "specials",   "denormals",      "zeros",           "constant",          "ascending",
    "descending", "extremes",       "overflow",        "one_then_tiny",     "half_steps",
    "one_large",  "rare_nans",      "rare_infinities", "negative_infinity", "factors"};

// The bits of one float type.
struct FloatBits {
  uint64_t sign, infinity, one, largest, smallest_normal;
};
constexpr FloatBits kFloat32Bits = {0x8000'0000, 0x7F80'0000, 0x3F80'0000, 0x7F7F'FFFF,
                                    0x0080'0000};
constexpr FloatBits kFloat16Bits = {0x8000, 0x7C00, 0x3C00, 0x7BFF, 0x0400};

class FloatValues {
 public:
  FloatValues(ValuePattern pattern, DataType type, uint64_t count, uint64_t reduced_count,
              uint64_t seed, Random& random)
      : pattern_(pattern),
        type_(type),
        bits_(type == DataType::kFloat32 ? kFloat32Bits : kFloat16Bits),
        // The large values are the first in their rows, or form the first row.
        large_every_(seed / 10 % 2 == 0 ? reduced_count : count),
        large_count_(seed / 10 % 2 == 0 ? 1 : count / reduced_count),
        half_step_(std::ldexp(17, -20 - static_cast<int>(seed % 10))),
        random_(random),
        chosen_(random.Below(count)),
        constant_(Number()),
        // Rounding to FLOAT16 may double a factor's logarithm: 80 is still 7 below overflow.
        factor_range_(40.0 / static_cast<double>(reduced_count)) {}

  uint64_t At(uint64_t index) {
    switch (pattern_) {
      case ValuePattern::kTies:
        return Bits(Integer(2));
      case ValuePattern::kSmallIntegers:
        return Bits(Integer(100));
      case ValuePattern::kNumbers:
        return Bits(Number());
      case ValuePattern::kPositive:
        return Bits(random_.Unit() * 100 + 0.001);
      case ValuePattern::kRandomBits:
        return random_.Bits() & (2 * bits_.sign - 1);
      case ValuePattern::kSpecials:
        return Special();
      case ValuePattern::kDenormals:
        return random_.Below(bits_.smallest_normal) | Sign();
      case ValuePattern::kZeros:
        return Sign();
      case ValuePattern::kConstant:
        return Bits(constant_);
      case ValuePattern::kAscending:
        return Bits(static_cast<double>(index % kSteps) / 16);
      case ValuePattern::kDescending:
        return Bits(-static_cast<double>(index % kSteps) / 16);
      case ValuePattern::kExtremes:
        return random_.OneIn(2) ? bits_.largest | Sign() : bits_.one | Sign();
      case ValuePattern::kOverflow:
        return bits_.largest - random_.Below(bits_.smallest_normal);
      case ValuePattern::kOneThenTiny:
        return index == 0 ? bits_.one : Bits(random_.Unit() * 0x1p-20);
      case ValuePattern::kHalfSteps:
        return Bits(index % large_every_ < large_count_ ? 256 : half_step_);
      case ValuePattern::kOneLarge:
        return Bits(index == chosen_ ? 50000 : random_.Unit() * 2 - 1);
      case ValuePattern::kRareNans:
        return random_.OneIn(200) ? Nan() : Bits(Number());
      case ValuePattern::kRareInfinities:
        return random_.OneIn(200) ? bits_.infinity | Sign() : Bits(Number());
      case ValuePattern::kNegativeInfinity:
        return random_.OneIn(1000) ? bits_.largest | bits_.sign : bits_.infinity | bits_.sign;
      case ValuePattern::kFactors:
        return Bits(std::exp((random_.Unit() * 2 - 1) * factor_range_)) | Sign();
    }
    return 0;
  }

 private:
  // FLOAT16 represents sixteenths of these steps; some are ties.
  static constexpr uint64_t kSteps = 32768;

  uint64_t Bits(double number) const { return BitsOf(type_, number); }
  uint64_t Sign() { return random_.OneIn(2) ? bits_.sign : 0; }
  double Integer(uint64_t most) {
    return static_cast<double>(random_.Below(2 * most + 1)) - static_cast<double>(most);
  }
  double Number() { return (random_.Unit() * 2 - 1) * 100; }
  uint64_t Nan() {
    const uint64_t payload = 1 + random_.Below(bits_.smallest_normal - 1);
    return bits_.infinity | payload | Sign();
  }
  uint64_t Special() {
    switch (random_.Below(8)) {
      case 0:
        return Nan();
      case 1:
        return bits_.infinity | Sign();
      case 2:
        return Sign();
      case 3:
        return 1 | Sign();
      case 4:
        return (bits_.smallest_normal - 1) | Sign();
      case 5:
        return bits_.smallest_normal | Sign();
      case 6:
        return bits_.largest | Sign();
      default:
        return bits_.one | Sign();
    }
  }

  const ValuePattern pattern_;
  const DataType type_;
  const FloatBits bits_;
  const uint64_t large_every_;
  const uint64_t large_count_;
  const double half_step_;
  Random& random_;
  const uint64_t chosen_;
  const double constant_;
  const double factor_range_;
};

class IntegerValues {
 public:
  IntegerValues(ValuePattern pattern, DataType type, uint64_t count, Random& random)
      : pattern_(pattern),
        is_signed_(IsSigned(type)),
        sign_(uint64_t{1} << (8 * ElementBytes(type) - 1)),
        random_(random),
        chosen_(random.Below(count)),
        constant_(random.Bits()) {}

  // More bits than the type has; the low ones are used.
  uint64_t At(uint64_t index) {
    switch (pattern_) {
      case ValuePattern::kTies:
        return Small(2);
      case ValuePattern::kSmallIntegers:
        return Small(100);
      case ValuePattern::kPositive:
        return 1 + random_.Below(100);
      case ValuePattern::kNumbers:  // of all magnitudes
        return random_.Bits() >> random_.Below(64);
      case ValuePattern::kRandomBits:
        return random_.Bits();
      case ValuePattern::kZeros:
        return 0;
      case ValuePattern::kConstant:
        return constant_;
      case ValuePattern::kAscending:
        return Smallest() + index % (sign_ - 1);
      case ValuePattern::kDescending:
        return Largest() - index % (sign_ - 1);
      case ValuePattern::kSpecials:
      case ValuePattern::kExtremes:
        return Special();
      case ValuePattern::kOverflow:
        return Largest() - random_.Below(3);
      case ValuePattern::kDenormals:
      case ValuePattern::kFactors:
        return random_.OneIn(3) ? ~uint64_t{0} : 1;
      case ValuePattern::kOneThenTiny:
      case ValuePattern::kHalfSteps:
        return index == 0 ? Largest() : 1;
      case ValuePattern::kOneLarge:
        return index == chosen_ ? Largest() : random_.Below(3);
      case ValuePattern::kRareNans:
      case ValuePattern::kRareInfinities:
        return random_.OneIn(200) ? Largest() : Small(100);
      case ValuePattern::kNegativeInfinity:
        return random_.OneIn(1000) ? Smallest() + 1 : Smallest();
    }
    return 0;
  }

 private:
  uint64_t Smallest() const { return is_signed_ ? sign_ : 0; }
  uint64_t Largest() const { return is_signed_ ? sign_ - 1 : 2 * sign_ - 1; }
  uint64_t Small(uint64_t most) { return random_.Below(2 * most + 1) - (is_signed_ ? most : 0); }
  uint64_t Special() {
    switch (random_.Below(6)) {
      case 0:
        return Smallest();
      case 1:
        return Largest();
      case 2:
        return Smallest() + 1;
      case 3:
        return Largest() - 1;
      case 4:
        return ~uint64_t{0};  // -1
      default:
        return random_.Below(2);
    }
  }

  const ValuePattern pattern_;
  const bool is_signed_;
  const uint64_t sign_;
  Random& random_;
  const uint64_t chosen_;
  const uint64_t constant_;
};

template <typename Values>
std::vector<std::byte> Fill(Values values, uint32_t element_bytes, uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (uint64_t i = 0; i < size_bytes / element_bytes; ++i) {
    const uint64_t bits = values.At(i);
    std::memcpy(bytes.data() + i * element_bytes, &bits, element_bytes);
  }
  return bytes;
}

}  // namespace

absl::string_view ToString(ValuePattern pattern) { return kNames[static_cast<size_t>(pattern)]; }

std::optional<ValuePattern> ParseValuePattern(absl::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<ValuePattern>(found - kNames.begin());
}

bool HoldsIntegers(ValuePattern pattern) {
  return pattern == ValuePattern::kTies || pattern == ValuePattern::kSmallIntegers;
}

std::vector<std::byte> MakeValues(ValuePattern pattern, DataType type, uint64_t size_bytes,
                                  uint64_t reduced_count, uint64_t seed) {
  Random random(seed);
  const uint32_t element_bytes = ElementBytes(type);
  const uint64_t count = size_bytes / element_bytes;
  return IsFloat(type)
             ? Fill(FloatValues(pattern, type, count, reduced_count, seed, random), element_bytes,
                    size_bytes)
             : Fill(IntegerValues(pattern, type, count, random), element_bytes, size_bytes);
}

}  // namespace opmill
