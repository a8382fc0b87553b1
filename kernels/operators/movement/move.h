// What operators that move elements have in common: a walk over elements, and for each of them
// where it comes from and where it goes. Devices compute moves, not operators.
#ifndef OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVE_H_
#define OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/dims/iteration_space.h"

namespace opmill {

// How a step along a dimension becomes a position in the input: MOVE_... of
// shaders/move_constants.h.
enum class MoveRule : uint32_t {
  kPlain,
  kConstant,
  kEdge,
  kMirror,
  kWrap,
  kReversed,
  kRow,
  kColumn,
  kOrder,
  kNearest,
};

// Strides are those of the input, the output and the indices. A plain dimension may have a negative
// one in the input, which wraps.
struct MoveDim {
  uint64_t size = 1;  // at most kMaxMoveSize
  Offsets<3> strides = {};
  MoveRule rule = MoveRule::kPlain;
  int64_t start = 0;        // added to the step, unless the dimension is plain
  uint64_t input_size = 1;  // positions of the input
  uint64_t period = 1;      // kMirror: until positions turn
  int64_t origin = 0;       // kNearest: with 32 binary digits, position 0 and what a step adds
  uint64_t scale = 0;
};

// A dimension of the input, or of the output, in which the index tensor gives the position.
struct IndexedDim {
  uint64_t size = 1;
  uint64_t stride = 0;
};

// What the index tensor has for each element.
enum class MoveIndex : uint32_t {
  kNone,
  kSource,       // positions in the input
  kDestination,  // positions in the output; of writes to one place the last along kOrder remains
  kLength,       // the length within which kReversed reverses indexed[0]
};

struct Move {
  uint32_t input = 0;  // of the operator
  Offsets<3> bases = {};
  std::vector<MoveDim> dims;  // row-major
  MoveIndex index = MoveIndex::kNone;
  uint32_t index_input = 0;
  uint64_t index_step = 0;  // from a coordinate of an index to the next
  std::vector<IndexedDim> indexed;
  uint64_t constant = 0;  // the bits of an element
  // The diagonals that hold the constant, as in DML_DIAGONAL_MATRIX1. Equal numbers: none.
  int32_t fill_begin = 0;
  int32_t fill_end = 0;
};

inline constexpr uint32_t kMaxMoveSize = 0x7FFF'FFFF;  // of a dimension

// The moves of a validated descriptor, one after the other.
std::vector<Move> MovesOf(const OperatorDesc& validated);

// Whether a step alone determines a position, and nothing else.
constexpr bool HasPositions(const MoveDim& dim) {
  return dim.rule <= MoveRule::kWrap || dim.rule == MoveRule::kNearest;
}
// The position of a step; nullopt outside of the input. Not for kReversed.
std::optional<uint64_t> PositionOf(const MoveDim& dim, uint64_t step);
// The range of positions of all steps.
struct Positions {
  uint64_t first = 0;
  uint64_t last = 0;
};
Positions PositionsOf(const MoveDim& dim);

// One element of a move: where it comes from and where it goes. It begins at the bases, and each
// dimension adds its step.
struct MovePlace {
  explicit MovePlace(const Move& move) : offsets(move.bases) {}
  void Add(const MoveDim& dim, uint64_t step);
  // Adds what the index tensor says. Returns whether the element is written.
  bool Follow(const Move& move, DataType index_type, const std::byte* indices);
  // Whether the element is the constant.
  bool IsConstant(const Move& move) const;

  Offsets<3> offsets;
  uint64_t along = 0;  // the step of kReversed
  int64_t diagonal = 0;
  bool is_inside = true;  // of the input
};

// Sorts dimensions by their stride in the output, largest first, merges those that can be walked as
// one, and removes those of size 1. At least one remains. A dimension of kOrder becomes the last.
void Simplify(Move& move);

// A move of the elements at equal coordinates.
Move PlainMove(const TensorDesc& input, const TensorDesc& output);
// The bits of a number of that type.
uint64_t ScalarBits(DataType type, const Scalar& scalar);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVE_H_
