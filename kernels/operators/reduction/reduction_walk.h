// Plans how a reduction reads memory: by rows or columns, in which steps, split over how many
// groups. Shared by reduce, arg-reduce, hardmax and the first pass of top_k.
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

// The shader of a reduction, with the macros that select what it computes.
struct Folding {
  std::string shader;
  DataType input_type = DataType::kUnknown;
  std::vector<ShaderMacro> macros;  // in addition to those listed in reduction.hlsli
  bool finds_positions = false;
  bool from_last = false;  // the last of equal elements wins
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
  uint64_t units = 0;         // results, or vectors of adjacent results
  uint64_t column_units = 1;  // units along the innermost kept dimension
  uint32_t width = 1;         // results that a lane folds at once, in the words of a vector
  uint64_t items = 0;         // steps of one complete reduction
  uint64_t run_length = 0;    // rows: elements in a run
  uint64_t run_vectors = 0;   // rows: vectors that cover a run
  uint64_t tile_vectors = 0;  // columns in tiles: units per lane; 0: no tiles
  uint64_t tile_rows = 0;     // columns in tiles: rows of one unit before the next unit

  bool narrow() const { return vector_elements > 4; }
};
Walk ChooseWalk(const IterationSpace& space, const Folding& folding, const PlanOptions& options);

// The number of lanes and groups that share one result.
struct Sharing {
  uint32_t lane_bits = 0;
  uint64_t splits = 1;
  uint64_t split_items = 0;
};
Sharing ChooseSharing(const Walk& walk, const PlanOptions& options);

// The number of units that each lane processes one after another, used if a unit has so few steps
// that starting a group would cost more.
uint64_t TurnsOf(uint64_t units, uint64_t steps, const PlanOptions& options);

// The limits of a slice for elements of these types.
SliceLimits LimitsFor(DataType input, DataType output, const PlanOptions& options);

// The destination of results, addressed by the output strides of their space.
struct ReductionOutput {
  BufferRole role = BufferRole::Output();
  DataType type = DataType::kUnknown;
};

// Adds a complete reduction to the plan: all slices, and a second pass if groups share results.
void AddReduction(PlanBuilder& builder, const Folding& folding, const IterationSpace& space,
                  const ReductionOutput& output);

// The folding that finds extremes, for arg-reduce and hardmax.
Folding ArgReduceFolding(DataType input, Extreme extreme, AxisDirection direction);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_REDUCTION_REDUCTION_WALK_H_
