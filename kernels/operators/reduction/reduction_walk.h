// How a reduction walks memory, for reduce, arg-reduce, hardmax and top_k's champions alike: which
// way (rows or columns), in what steps, split over how many groups.
#ifndef OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_WALK_H_
#define OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_WALK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/plan/iteration_space.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/reduction_constants.h"

namespace opmill {

// What is folded: the shader and the macros that say how.
struct Folding {
  std::string shader;
  DataType input_type = DataType::kUnknown;
  std::vector<ShaderMacro> macros;  // beyond those that reduction.hlsli names
  bool finds_positions = false;
  bool from_last = false;  // of equal elements the last one is wanted
};

// How the items of one kept and reduced slice are read.
enum class Load : uint32_t {
  kAligned = LOAD_ALIGNED,
  kShifted = LOAD_SHIFTED,
  kScalar = LOAD_SCALAR,
  kRecord = LOAD_RECORD,
};

struct Walk {
  bool columns = false;
  Load load = Load::kAligned;
  uint32_t vector_elements = 0;
  uint64_t units = 0;         // results, or vectors of neighbouring results
  uint64_t column_units = 1;  // of those, along the innermost kept dimension
  uint32_t width = 1;         // results that a lane folds side by side, in words of one vector
  uint64_t items = 0;         // steps of one whole reduction
  uint64_t run_length = 0;    // rows: elements in a run
  uint64_t run_vectors = 0;   // rows: vectors that cover a run
  uint64_t tile_vectors = 0;  // columns in tiles: units that a lane walks; 0: without tiles
  uint64_t tile_rows = 0;     // columns in tiles: rows walked of one unit before the next

  bool narrow() const { return vector_elements > 4; }
};
Walk ChooseWalk(const IterationSpace& space, const Folding& folding, const PlanOptions& options);

// How many lanes and groups share one result.
struct Sharing {
  uint32_t lane_bits = 0;
  uint64_t splits = 1;
  uint64_t split_items = 0;
};
Sharing ChooseSharing(const Walk& walk, const PlanOptions& options);

// Units that each lane takes one after another, where one of so few steps is less than a group
// costs.
uint64_t TurnsOf(uint64_t units, uint64_t steps, const PlanOptions& options);

// Limits of one slice for elements of this type.
SliceLimits LimitsFor(DataType input, DataType output, const PlanOptions& options);

// Where results go, by the output strides of their space.
struct ReductionOutput {
  BufferRole role = BufferRole::Output();
  DataType type = DataType::kUnknown;
};

// A whole reduction: every slice, and a second pass where groups share results.
void AddReduction(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                  const ReductionOutput& output);

// The folding that finds extremes, for arg-reduce and hardmax.
Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_WALK_H_
