// The operators of movement_rows.inc, and what their schemas have in common.
#ifndef OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVEMENT_H_
#define OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/movement/move.h"
#include "kernels/operators/operator_list.h"

namespace opmill {

#define OPMILL_MOVEMENT(Name)                  \
  extern const OperatorSchema k##Name##Schema; \
  std::vector<Move> Name##Moves(const OperatorDesc& validated);
#include "kernels/operators/movement/movement_rows.inc"
#undef OPMILL_MOVEMENT

// Of operators with one input and one output.
inline constexpr TensorSchema kMovedInput[] = {{.name = "input"}};
inline constexpr TensorSchema kMovedOutput[] = {{.name = "output"}};

inline constexpr DataTypeSet kIndexTypes = kIntegers32 | kIntegers64;
inline constexpr DataTypeSet kUint32Type = {DataType::kUint32};
// Of operators that gather or scatter.
inline constexpr FeatureLevelRow kIndexedRows[] = {
    {FeatureLevel::k4_1, 1, 8, kTenTypes, {}, kIndexTypes},
    {FeatureLevel::k3_0, 1, 8, kEightTypes, {}, kIndexTypes},
    {FeatureLevel::k2_1, 4, 4, kEightTypes, {}, kUint32Type},
    {FeatureLevel::k1_0, 4, 4, kFloats, {}, kUint32Type}};

// Checks the sizes of an output, which has the type of the first input, and infers it.
absl::Status InferSizes(const OperatorDesc& desc, const std::vector<uint64_t>& sizes,
                        std::vector<InferredOutput>& outputs);
// Checks that a list has an entry for each dimension of the first input.
absl::Status CheckEntries(const OperatorDesc& desc, absl::string_view attribute);
// Checks that an input has the number of dimensions of the first one, and the sizes of input
// `other`, except along `but`.
absl::Status CheckSizes(const OperatorDesc& desc, size_t input, size_t other, size_t but);

// Of operators whose index tensor adds and removes dimensions. Checks the number of an input's
// dimensions that count, without leading ones of size 1: at least `least`.
absl::Status CheckRelevant(const OperatorDesc& desc, size_t input, absl::string_view attribute,
                           uint32_t least);
// Infers an output of these dimensions, right-aligned in as many as the first input has. Leading
// dimensions that do not fit must have size 1.
absl::Status InferAligned(const OperatorDesc& desc, const std::vector<MoveDim>& dims,
                          std::vector<InferredOutput>& outputs);
// A walk over these dimensions, and indices in input 1.
Move AlignedMove(const OperatorDesc& desc, std::vector<MoveDim> dims);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MOVEMENT_MOVEMENT_H_
