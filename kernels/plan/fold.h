// Plans how a reduction reads memory: by rows or columns, in which steps, shared by how many lanes
// and groups. Used by reduce, arg-reduce and hardmax.
#ifndef OPMILL_KERNELS_PLAN_FOLD_H_
#define OPMILL_KERNELS_PLAN_FOLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/reduction_constants.h"

namespace opmill {

// The shader of a reduction, with the macros that select what it computes.
struct Folding {
  std::string shader;
  DataType input_type = DataType::kUnknown;
  std::vector<ShaderMacro> macros;  // in addition to those listed in reduction.hlsli
  bool from_last = false;           // the last of equal elements wins
  bool adds_floats = false;         // rounding errors limit the steps of a lane
};

// Units, and the items of each, that lanes and groups divide among each other (task.hlsli).
struct Work {
  uint64_t units = 0;
  uint64_t items = 0;
  // Adjacent lanes take adjacent units. Otherwise they share a unit, and take adjacent items.
  bool side_by_side = false;
  uint64_t most_lane_items = 0;
  bool in_one_group = false;  // the items of a unit are not split over groups
};

struct Sharing {
  uint32_t lane_bits = 0;   // 2^lane_bits lanes of a group share a unit,
  uint32_t part_shift = 0;  // 2^part_shift apart
  uint64_t tiles = 1;       // groups that take all units
  uint64_t splits = 1;      // groups that share a unit
};
Sharing ChooseSharing(const Work& work, const PlanOptions& options);

// Sets what task.hlsli reads, and the number of groups.
template <typename Constants>
void SetSharing(Dispatch& dispatch, Constants constants, const Work& work, const Sharing& sharing) {
  constants.groups.unit_count = static_cast<uint32_t>(work.units);
  constants.item_count = static_cast<uint32_t>(work.items);
  constants.splits = static_cast<uint32_t>(sharing.splits);
  constants.tiles = static_cast<uint32_t>(sharing.tiles);
  constants.lane_bits = sharing.lane_bits;
  constants.part_shift = sharing.part_shift;
  dispatch.constants = constants;
  SetGroups(dispatch, sharing.tiles * sharing.splits);
}

// The limits of a slice for elements of these types.
SliceLimits LimitsFor(DataType input, DataType output, const PlanOptions& options);

// The destination of results, addressed by the output strides of their space.
struct ReductionOutput {
  BufferRole role = BufferRole::Output();
  DataType type = DataType::kUnknown;
};

// Adds a complete reduction to the plan: all slices, and a second pass if the elements of a result
// are in several slices.
void AddReduction(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                  const ReductionOutput& output);

// Records that a pass leaves for the next one: `count` of each result, `stride` apart. Those of
// adjacent results are adjacent.
struct RecordSet {
  BufferView view;
  uint64_t count = 0;
  uint64_t stride = 0;
};

// Adds a reduction that leaves records. `use` adds, for a kept slice of the space, the dispatches
// that read them.
void AddReductionToRecords(
    PlanBuilder& builder, const Folding& folding, const IterationSpace& space, DataType output,
    absl::FunctionRef<void(const IterationSpace& slice, const RecordSet& records)> use);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_FOLD_H_
