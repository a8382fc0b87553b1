// FLOAT16 (IEEE 754 binary16), represented by its bits.
#ifndef OPMILL_KERNELS_DESCRIPTOR_HALF_H_
#define OPMILL_KERNELS_DESCRIPTOR_HALF_H_

#include <cstdint>

namespace opmill {

float HalfToFloat(uint16_t half);  // exact; a NaN keeps its sign and payload
// Rounds to nearest even; overflow is infinity; a NaN becomes a quiet NaN of the same sign that
// keeps the top of its payload.
uint16_t FloatToHalf(float value);

}  // namespace opmill

#endif  // OPMILL_KERNELS_DESCRIPTOR_HALF_H_
