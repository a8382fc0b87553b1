#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"},
                                    {.name = "indices", .type = TypeVariable::kOther}};
constexpr AttributeSchema kAttributes[] = {{.name = "axis", .kind = AttributeKind::kAxis}};
constexpr SupportTable kSupport[] = {{.rows = absl::MakeConstSpan(kIndexedRows).first(3)}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  RETURN_IF_ERROR(CheckSizes(desc, 1, 0, desc.number("axis")));
  return InferSizes(desc, {desc.inputs[1].sizes.begin(), desc.inputs[1].sizes.end()}, outputs);
}

}  // namespace

constinit const OperatorSchema kGatherElementsSchema = {
    .name = "gather_elements",
    .alias = "take_along_axis",
    .summary = "for each index, the input's element there along the axis",
    .inputs = kInputs,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> GatherElementsMoves(const OperatorDesc& desc) {
  const uint32_t axis = desc.number("axis");
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  SetStrides(move.dims, kIndicesTensor, desc.inputs[1]);
  move.indexed = {
      {.size = desc.inputs[0].sizes[axis], .stride = move.dims[axis].strides[kInputTensor]}};
  move.dims[axis].strides[kInputTensor] = 0;
  move.index = MoveIndex::kSource;
  move.index_input = 1;
  return {move};
}

}  // namespace opmill
