#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"},
                                    {.name = "sequence_lengths", .type = TypeVariable::kOther}};
constexpr AttributeSchema kAttributes[] = {{.name = "axis", .kind = AttributeKind::kAxis}};
constexpr DataTypeSet kLengths = {DataType::kUint64, DataType::kUint32};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_1, 1, 8, kTenTypes, {}, kLengths},
                                     {FeatureLevel::k3_0, 4, 5, kEightTypes, {}, kUint32Type},
                                     {FeatureLevel::k2_1, 4, 4, kEightTypes, {}, kUint32Type}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const uint32_t axis = desc.number("axis");
  RETURN_IF_ERROR(CheckSizes(desc, 1, 0, axis));
  if (desc.inputs[1].sizes[axis] != 1) {
    const std::string field = absl::StrCat("sequence_lengths.sizes[", axis, "]");
    return InvalidField(field, absl::StrCat(field, " is ", desc.inputs[1].sizes[axis],
                                            ", but must be 1 along the axis."));
  }
  return InferSizes(desc, {desc.inputs[0].sizes.begin(), desc.inputs[0].sizes.end()}, outputs);
}

}  // namespace

constinit const OperatorSchema kReverseSubsequencesSchema = {
    .name = "reverse_subsequences",
    .summary = "the input, with the first elements of each sequence along the axis reversed",
    .inputs = kInputs,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> ReverseSubsequencesMoves(const OperatorDesc& desc) {
  const uint32_t axis = desc.number("axis");
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  SetStrides(move.dims, kIndicesTensor, desc.inputs[1]);
  MoveDim& along = move.dims[axis];
  move.indexed = {{.size = desc.inputs[0].sizes[axis], .stride = along.strides[kInputTensor]}};
  along.strides[kInputTensor] = along.strides[kIndicesTensor] = 0;
  along.rule = MoveRule::kReversed;
  move.index = MoveIndex::kLength;
  move.index_input = 1;
  return {move};
}

}  // namespace opmill
