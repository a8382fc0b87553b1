// Where the values of a program and the scratch of its nodes are in memory: a pure function.
#ifndef OPMILL_KERNELS_PROGRAM_PLACEMENT_H_
#define OPMILL_KERNELS_PROGRAM_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/program/program.h"

namespace opmill {

inline constexpr uint64_t kPlacementAlignment = 256;  // what every device's buffers have

struct ValuePlace {
  ValueKind kind = ValueKind::kInput;
  uint32_t index = 0;         // unless it is an intermediate: among the values of its kind
  uint64_t offset_bytes = 0;  // of an intermediate: in the arena; of a view: of its first element
};

// An intermediate that is a part of another one: its memory begins at the offset.
struct ValuePart {
  uint32_t value = 0;
  uint32_t whole = 0;
  uint64_t offset_bytes = 0;
};

// Intermediates and scratch share one arena. What is needed at the same time does not overlap: an
// intermediate from the node that writes it to the last one that reads it, scratch during its node.
struct ProgramPlaces {
  std::vector<ValuePlace> values;
  std::vector<uint64_t> scratch_offsets;  // of each node, in the arena
  uint64_t arena_bytes = 0;
  uint64_t live_bytes = 0;  // the most that is needed at the same time: no arena can be smaller
};

// `program` must have passed Validate, except that some intermediates may be in no node. Those take
// no memory, the others take whole multiples of the alignment, so that kernels may read whole
// vectors. A value is part of at most one other. If parts are nested, the inner one comes first.
ProgramPlaces Place(const Program& program, absl::Span<const uint64_t> scratch_bytes,
                    absl::Span<const ValuePart> parts = {});

// Where the first element of a view of the program is.
ValuePlace PlaceOf(const ProgramView& view, const Program& program, const ProgramPlaces& places);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PROGRAM_PLACEMENT_H_
