#include <optional>

#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr absl::string_view kModes[] = {"CONSTANT", "EDGE", "REFLECTION", "SYMMETRIC", "WRAP"};
enum class PaddingMode : uint32_t { kConstant, kEdge, kReflection, kSymmetric, kWrap };

constexpr AttributeSchema kAttributes[] = {
    {.name = "padding_mode",
     .kind = AttributeKind::kChoice,
     .choices = kModes,
     .default_text = "CONSTANT"},
    {.name = "padding_value", .kind = AttributeKind::kScalar, .default_text = "0"},
    {.name = "start_padding", .kind = AttributeKind::kNumbers},
    {.name = "end_padding", .kind = AttributeKind::kNumbers}};

std::optional<Breach> FindWrap(const OperatorDesc& desc) {
  if (desc.choice<PaddingMode>("padding_mode") != PaddingMode::kWrap) return std::nullopt;
  return Breach{"padding_mode",
                "takes CONSTANT, EDGE, REFLECTION, SYMMETRIC, but padding_mode is "
                "WRAP"};
}

constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k6_4, 1, 8, kTenTypes}};
constexpr FeatureLevelRow kRows5[] = {{FeatureLevel::k5_0, 1, 8, kTenTypes}};
constexpr SupportTable kSupport[] = {
    {.rows = kRows},
    {.rows = kRows5, .condition = "padding_mode is not WRAP", .find_breach = &FindWrap}};

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  RETURN_IF_ERROR(CheckEntries(desc, "start_padding"));
  RETURN_IF_ERROR(CheckEntries(desc, "end_padding"));
  std::vector<uint64_t> sizes;
  for (size_t d = 0; d < desc.inputs[0].sizes.size(); ++d) {
    sizes.push_back(uint64_t{desc.inputs[0].sizes[d]} + desc.list("start_padding")[d] +
                    desc.list("end_padding")[d]);
  }
  return InferSizes(desc, sizes, outputs);
}

}  // namespace

constinit const OperatorSchema kPaddingSchema = {.name = "padding1",
                                                 .summary = "the input with padding around it",
                                                 .inputs = kMovedInput,
                                                 .outputs = kMovedOutput,
                                                 .attributes = kAttributes,
                                                 .family = OperatorFamily::kMovement,
                                                 .support = kSupport,
                                                 .infer = &Infer};

std::vector<Move> PaddingMoves(const OperatorDesc& desc) {
  Move move = PlainMove(desc.inputs[0], *desc.outputs[0]);
  move.constant = ScalarBits(desc.outputs[0]->data_type, desc.value<Scalar>("padding_value"));
  const auto mode = desc.choice<PaddingMode>("padding_mode");
  for (size_t d = 0; d < move.dims.size(); ++d) {
    MoveDim& dim = move.dims[d];
    if (dim.size == dim.input_size) continue;
    const auto padding = static_cast<int64_t>(desc.list("start_padding")[d]);
    const auto size = static_cast<int64_t>(dim.input_size);
    dim.start = -padding;
    if (mode == PaddingMode::kConstant) {
      dim.rule = MoveRule::kConstant;
    } else if (mode == PaddingMode::kEdge || size == 1) {
      dim.rule = MoveRule::kEdge;
    } else if (mode == PaddingMode::kWrap) {
      dim.rule = MoveRule::kWrap;
      dim.start = (size - padding % size) % size;
    } else {
      // Positions repeat after two periods.
      dim.rule = MoveRule::kMirror;
      dim.period = mode == PaddingMode::kReflection ? dim.input_size - 1 : dim.input_size;
      const auto cycle = static_cast<int64_t>(2 * dim.period);
      dim.start = (cycle - padding % cycle) % cycle;
    }
  }
  return {move};
}

}  // namespace opmill
