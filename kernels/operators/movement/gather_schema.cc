#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"},
                                    {.name = "indices", .type = TypeVariable::kOther}};
constexpr AttributeSchema kAttributes[] = {
    {.name = "axis", .kind = AttributeKind::kAxis},
    {.name = "index_dimensions", .kind = AttributeKind::kNumber}};
constexpr SupportTable kSupport[] = {{.rows = kIndexedRows}};

// The dimensions of the output that are not padding: the input's, with those of the indices in the
// place of the axis. Leading ones may be more than the output has; their size is 1.
std::vector<MoveDim> GatheredDims(const OperatorDesc& desc) {
  const TensorDesc& input = desc.inputs[0];
  const TensorDesc& indices = desc.inputs[1];
  const std::vector<uint32_t> from = EffectiveStrides(input);
  const std::vector<uint32_t> index = EffectiveStrides(indices);
  std::vector<MoveDim> dims;
  for (size_t d = 0; d < input.sizes.size(); ++d) {
    if (d != desc.number("axis")) {
      dims.push_back({.size = input.sizes[d], .strides = {from[d]}});
      continue;
    }
    for (size_t i = index.size() - desc.number("index_dimensions"); i < index.size(); ++i) {
      dims.push_back({.size = indices.sizes[i], .strides = {0, 0, index[i]}});
    }
  }
  return dims;
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  RETURN_IF_ERROR(CheckRank(desc, 1));
  RETURN_IF_ERROR(CheckRelevant(desc, 1, "index_dimensions", 0));
  return InferAligned(desc, GatheredDims(desc), outputs);
}

}  // namespace

constinit const OperatorSchema kGatherSchema = {
    .name = "gather",
    .summary = "the input at the indices along the axis",
    .inputs = kInputs,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> GatherMoves(const OperatorDesc& desc) {
  const TensorDesc& input = desc.inputs[0];
  const uint32_t axis = desc.number("axis");
  Move move = AlignedMove(desc, GatheredDims(desc));
  move.indexed = {{.size = input.sizes[axis], .stride = EffectiveStrides(input)[axis]}};
  return {move};
}

}  // namespace opmill
