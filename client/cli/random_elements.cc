#include "client/cli/random_elements.h"

#include <cstring>
#include <random>

#include "client/names.h"

namespace opmill {
namespace {

// Takes sign and mantissa from random bits, and one of the five exponents below 1.
uint64_t FloatBits(uint64_t random, int mantissa_bits, int bias, int sign_bit) {
  const uint64_t mantissa = random & ((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t exponent = static_cast<uint64_t>(bias) - 1 - (random >> 40) % 5;
  const uint64_t sign = random >> 63;
  return sign << sign_bit | exponent << mantissa_bits | mantissa;
}

}  // namespace

std::vector<std::byte> RandomElements(v1::DataType type, size_t count, uint64_t seed) {
  const size_t size = ElementBytes(type);
  std::vector<std::byte> bytes(count * size);
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    if (type == v1::DATA_TYPE_FLOAT32) bits = FloatBits(bits, 23, 127, 31);
    if (type == v1::DATA_TYPE_FLOAT16) bits = FloatBits(bits, 10, 15, 15);
    std::memcpy(&bytes[i * size], &bits, size);  // little-endian, like all supported machines
  }
  return bytes;
}

}  // namespace opmill
