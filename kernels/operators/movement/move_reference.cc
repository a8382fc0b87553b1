#include <cstring>
#include <vector>

#include "kernels/operators/movement/move.h"
#include "kernels/reference/element_access.h"

namespace opmill {

void ReferenceMovement(const ReferenceCall& call) {
  const TensorDesc& output = *call.desc.outputs[0];
  const uint32_t bytes = ElementBytes(output.data_type);
  std::memset(call.outputs[0].data(), 0, RequiredBytes(output));
  for (const Move& move : MovesOf(call.desc)) {
    std::vector<uint32_t> sizes;
    for (const MoveDim& dim : move.dims) sizes.push_back(static_cast<uint32_t>(dim.size));
    ForEachCoordinate(sizes, call.abandoned, [&](const Coordinate& steps) {
      MovePlace place(move);
      for (size_t d = 0; d < steps.size(); ++d) place.Add(move.dims[d], steps[d]);
      if (!place.Follow(move, call.desc.inputs[move.index_input].data_type,
                        call.inputs[move.index_input].data())) {
        return;
      }
      std::memcpy(call.outputs[0].data() + place.offsets[kOutputTensor] * bytes,
                  place.IsConstant(move)
                      ? reinterpret_cast<const std::byte*>(&move.constant)
                      : call.inputs[move.input].data() + place.offsets[kInputTensor] * bytes,
                  bytes);
    });
  }
}

}  // namespace opmill
