#include <bit>
#include <cstdint>

#include "kernels/operators/elementwise/element_wise_add_desc.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

uint64_t FloatSum(DataType type, uint64_t a, uint64_t b) {
  if (type == DataType::kFloat32) {
    const float sum = std::bit_cast<float>(static_cast<uint32_t>(a)) +
                      std::bit_cast<float>(static_cast<uint32_t>(b));
    return std::bit_cast<uint32_t>(sum);
  }
  // A sum rounded to 24 bits and then to 11 is the exact sum rounded to 11 bits.
  return FloatToHalf(HalfToFloat(static_cast<uint16_t>(a)) + HalfToFloat(static_cast<uint16_t>(b)));
}

uint64_t Sum(DataType type, uint64_t a, uint64_t b) {
  if (!IsFloat(type)) return a + b;  // the low bits are stored
  const uint64_t sum = FloatSum(type, a, b);
  return IsNan(type, sum) ? CanonicalNan(type) : sum;
}

}  // namespace

void ReferenceElementWiseAdd(const ReferenceCall& call) {
  const ElementWiseAddDesc desc = ElementWiseAddDesc::From(call.desc);
  const Reader a(desc.a, call.inputs[0]);
  const Reader b(desc.b, call.inputs[1]);
  Writer writer(*desc.output, call.outputs[0]);
  ForEachCoordinate(desc.a.sizes, call.abandoned, [&](const Coordinate& coordinate) {
    writer.Store(coordinate, Sum(desc.a.data_type, a.At(coordinate), b.At(coordinate)));
  });
}

}  // namespace opmill
