#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {
    {.name = "input"}, {.name = "indices", .type = TypeVariable::kOther}, {.name = "updates"}};
constexpr AttributeSchema kAttributes[] = {{.name = "axis", .kind = AttributeKind::kAxis}};
constexpr SupportTable kSupport[] = {{.rows = kIndexedRows}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  constexpr size_t kNone = kMaxRank;
  RETURN_IF_ERROR(CheckSizes(desc, 1, 0, desc.number("axis")));
  RETURN_IF_ERROR(CheckSizes(desc, 2, 1, kNone));
  RETURN_IF_ERROR(CheckType(desc, 2));
  return InferSizes(desc, {desc.inputs[0].sizes.begin(), desc.inputs[0].sizes.end()}, outputs);
}

}  // namespace

constinit const OperatorSchema kScatterSchema = {
    .name = "scatter",
    .summary = "the input, with updates at the indices along the axis",
    .inputs = kInputs,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> ScatterMoves(const OperatorDesc& desc) {
  const uint32_t axis = desc.number("axis");
  const TensorDesc& output = *desc.outputs[0];
  Move updates = PlainMove(desc.inputs[2], output);
  updates.input = 2;
  for (size_t d = 0; d < updates.dims.size(); ++d) {
    updates.dims[d].size = desc.inputs[2].sizes[d];
  }
  SetStrides(updates.dims, kIndicesTensor, desc.inputs[1]);
  MoveDim& along = updates.dims[axis];
  updates.indexed = {{.size = output.sizes[axis], .stride = along.strides[kOutputTensor]}};
  along.strides[kOutputTensor] = 0;
  along.rule = MoveRule::kOrder;
  updates.index = MoveIndex::kDestination;
  updates.index_input = 1;
  return {PlainMove(desc.inputs[0], output), updates};
}

}  // namespace opmill
