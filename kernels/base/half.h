// FLOAT16 (IEEE 754 binary16) as bits.
#ifndef OPMILL_KERNELS_BASE_HALF_H_
#define OPMILL_KERNELS_BASE_HALF_H_

#include <cstdint>

namespace opmill {

float HalfToFloat(uint16_t half);  // exact; a NaN keeps its sign and payload

// Takes a float or a double, and rounds once, to nearest even. Overflow gives infinity. A NaN
// becomes a quiet NaN of the same sign that keeps the top of its payload.
uint16_t FloatToHalf(double value);

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_HALF_H_
