#ifndef OPMILL_KERNELS_BASE_ROUNDING_H_
#define OPMILL_KERNELS_BASE_ROUNDING_H_

#include <cstdint>

namespace opmill {

constexpr uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Rounds up to a multiple of `to`.
constexpr uint64_t RoundUp(uint64_t value, uint64_t to) { return CeilDiv(value, to) * to; }

// Divides `value` into as few parts as possible of at most `most` each, of about equal size.
// Returns the size of a part.
constexpr uint64_t EvenPart(uint64_t value, uint64_t most) {
  return CeilDiv(value, CeilDiv(value, most));
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_ROUNDING_H_
