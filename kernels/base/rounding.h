#ifndef OPMILL_KERNELS_BASE_ROUNDING_H_
#define OPMILL_KERNELS_BASE_ROUNDING_H_

#include <cstdint>

namespace opmill {

constexpr uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// The next multiple of `to`, or `value` where it is one.
constexpr uint64_t RoundUp(uint64_t value, uint64_t to) { return CeilDiv(value, to) * to; }

// The size of the parts of `value` where they are as few as parts of at most `most` can be, and
// about alike.
constexpr uint64_t EvenPart(uint64_t value, uint64_t most) {
  return CeilDiv(value, CeilDiv(value, most));
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_ROUNDING_H_
