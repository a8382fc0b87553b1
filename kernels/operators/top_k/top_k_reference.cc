#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/reference/element_access.h"

namespace opmill {

void ReferenceTopK(const ReferenceCall& call) {
  const TopKDesc desc = TopKDesc::From(call.desc);
  const Reader reader(desc.input, call.inputs[0]);
  const ReductionShape shape(desc.input.sizes, {desc.axis}, call.abandoned);
  Writer values(*desc.output_values, call.outputs[0]);
  Writer indices(*desc.output_indices, call.outputs[1]);
  struct Candidate {
    uint64_t key;
    uint64_t index;
    uint64_t bits;
  };
  std::vector<Candidate> candidates;
  shape.ForEachOutput([&](const Coordinate& sequence) {
    candidates.clear();
    shape.ForEachReduced(sequence, [&](const Coordinate& coordinate, uint64_t position) {
      const uint64_t bits = reader.At(coordinate);
      candidates.push_back({OrderKey(desc.input.data_type, bits), position, bits});
    });
    if (call.abandoned.stop_requested()) return;  // there may be fewer than k
    const bool decreasing = desc.axis_direction == AxisDirection::kDecreasing;
    std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      if (a.key != b.key) return decreasing ? a.key > b.key : a.key < b.key;
      return a.index < b.index;
    });
    Coordinate place = sequence;
    for (uint32_t i = 0; i < desc.k; ++i) {
      place[desc.axis] = i;
      values.Store(place, candidates[i].bits);
      indices.Store(place, candidates[i].index);
    }
  });
}

}  // namespace opmill
