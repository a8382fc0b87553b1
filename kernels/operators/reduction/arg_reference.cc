#include "kernels/operators/reduction/arg_reference.h"

namespace opmill {
namespace {

// The element with the largest key is picked.
uint64_t PickKey(DataType type, Extreme extreme, uint64_t bits) {
  const uint64_t key = OrderKey(type, bits);
  // Inverted keys of numbers are below a NaN's key, because no float has the key 0.
  return extreme == Extreme::kMax || IsNan(type, bits) ? key : ~key;
}

}  // namespace

uint64_t PickPosition(DataType type, const Reader& input, const ReductionShape& shape,
                      const Coordinate& output, Extreme extreme, AxisDirection direction) {
  uint64_t best_key = 0;
  uint64_t best = 0;
  shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t position) {
    const uint64_t key = PickKey(type, extreme, input.At(coordinate));
    const bool later_wins = direction == AxisDirection::kDecreasing && key == best_key;
    if (position == 0 || key > best_key || later_wins) {
      best_key = key;
      best = position;
    }
  });
  return best;
}

}  // namespace opmill
