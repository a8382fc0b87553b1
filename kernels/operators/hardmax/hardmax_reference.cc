#include <cstdint>

#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/arg_reference.h"

namespace opmill {

void ReferenceHardmax(const ReferenceCall& call) {
  const HardmaxDesc desc = HardmaxDesc::From(call.desc);
  const DataType type = desc.input.data_type;
  const Reader reader(desc.input, call.inputs[0]);
  const ReductionShape shape(desc.input.sizes, desc.axes, call.abandoned);
  Writer writer(*desc.output, call.outputs[0]);
  shape.ForEachOutput([&](const Coordinate& output) {
    const uint64_t picked =
        PickPosition(type, reader, shape, output, Extreme::kMax, AxisDirection::kIncreasing);
    shape.ForEachReduced(output, [&](const Coordinate& coordinate, uint64_t position) {
      writer.Store(coordinate, FromDouble(type, position == picked ? 1 : 0));
    });
  });
}

}  // namespace opmill
