#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr AttributeSchema kAttributes[] = {{.name = "repeats", .kind = AttributeKind::kNumbers}};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_1, 1, 8, kTenTypes},
                                     {FeatureLevel::k3_1, 1, 8, kEightTypes},
                                     {FeatureLevel::k2_1, 4, 4, kEightTypes},
                                     {FeatureLevel::k1_0, 4, 4, kFloats}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  RETURN_IF_ERROR(CheckEntries(desc, "repeats"));
  std::vector<uint64_t> sizes;
  for (size_t d = 0; d < desc.inputs[0].sizes.size(); ++d) {
    const uint32_t repeats = desc.list("repeats")[d];
    if (repeats == 0) {
      const std::string field = absl::StrCat("repeats[", d, "]");
      return InvalidField(field, absl::StrCat(field, " (0) is below 1."));
    }
    sizes.push_back(uint64_t{desc.inputs[0].sizes[d]} * repeats);
  }
  return InferSizes(desc, sizes, outputs);
}

}  // namespace

constinit const OperatorSchema kTileSchema = {.name = "tile",
                                              .summary = "copies of the input, side by side",
                                              .inputs = kMovedInput,
                                              .outputs = kMovedOutput,
                                              .attributes = kAttributes,
                                              .family = OperatorFamily::kMovement,
                                              .support = kSupport,
                                              .infer = &Infer};

std::vector<Move> TileMoves(const OperatorDesc& desc) {
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  for (MoveDim& dim : move.dims) {
    if (dim.input_size == 1) {
      dim.strides[kInputTensor] = 0;
    } else if (dim.size > dim.input_size) {
      dim.rule = MoveRule::kWrap;
    }
  }
  return {move};
}

}  // namespace opmill
