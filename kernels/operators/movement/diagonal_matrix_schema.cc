#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr AttributeSchema kAttributes[] = {
    {.name = "value", .kind = AttributeKind::kScalar, .default_text = "1"},
    {.name = "diagonal_fill_begin", .kind = AttributeKind::kSigned, .default_text = "0"},
    {.name = "diagonal_fill_end", .kind = AttributeKind::kSigned, .default_text = "1"}};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k5_1, 2, 4, kTenTypes}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  return InferSizes(desc, {desc.inputs[0].sizes.begin(), desc.inputs[0].sizes.end()}, outputs);
}

}  // namespace

constinit const OperatorSchema kDiagonalMatrixSchema = {
    .name = "diagonal_matrix1",
    .summary =
        "the input, with a value on the diagonals from diagonal_fill_begin on, up to before "
        "diagonal_fill_end",
    .inputs = kMovedInput,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> DiagonalMatrixMoves(const OperatorDesc& desc) {
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  const size_t rank = move.dims.size();
  move.dims[rank - 2].rule = MoveRule::kRow;
  move.dims[rank - 1].rule = MoveRule::kColumn;
  move.fill_begin = desc.value<int32_t>("diagonal_fill_begin");
  move.fill_end = desc.value<int32_t>("diagonal_fill_end");
  move.constant = ScalarBits(desc.outputs[0]->data_type, desc.value<Scalar>("value"));
  return {move};
}

}  // namespace opmill
