#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"},
                                    {.name = "input1", .optional = true},
                                    {.name = "input2", .optional = true},
                                    {.name = "input3", .optional = true},
                                    {.name = "input4", .optional = true},
                                    {.name = "input5", .optional = true},
                                    {.name = "input6", .optional = true},
                                    {.name = "input7", .optional = true}};
constexpr AttributeSchema kAttributes[] = {{.name = "axis", .kind = AttributeKind::kAxis}};
constexpr DataTypeSet kTypes1 =
    kFloats | kIntegers32 | DataTypeSet{DataType::kInt16, DataType::kUint16};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_1, 1, 8, kTenTypes},
                                     {FeatureLevel::k3_0, 4, 5, kEightTypes},
                                     {FeatureLevel::k2_1, 4, 4, kEightTypes},
                                     {FeatureLevel::k1_0, 4, 4, kTypes1}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const uint32_t axis = desc.number("axis");
  const TensorDesc& first = desc.inputs[0];
  std::vector<uint64_t> sizes(first.sizes.begin(), first.sizes.end());
  for (size_t i = 1; i < desc.inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckSizes(desc, i, 0, axis));
    RETURN_IF_ERROR(CheckType(desc, i));
    sizes[axis] += desc.inputs[i].sizes[axis];
  }
  return InferSizes(desc, sizes, outputs);
}

}  // namespace

constinit const OperatorSchema kJoinSchema = {
    .name = "join",
    .summary = "up to 8 inputs, one after the other along the axis",
    .inputs = kInputs,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> JoinMoves(const OperatorDesc& desc) {
  const uint32_t axis = desc.number("axis");
  std::vector<Move> moves;
  uint64_t position = 0;
  for (uint32_t i = 0; i < desc.inputs.size(); ++i) {
    Move& move = moves.emplace_back(PlainMove(desc.inputs[i], *desc.outputs[0]));
    move.input = i;
    move.dims[axis].size = desc.inputs[i].sizes[axis];
    move.bases[kOutputTensor] = position * move.dims[axis].strides[kOutputTensor];
    position += desc.inputs[i].sizes[axis];
  }
  return moves;
}

}  // namespace opmill
