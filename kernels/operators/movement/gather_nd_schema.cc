#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "input"},
                                    {.name = "indices", .type = TypeVariable::kOther}};
constexpr AttributeSchema kAttributes[] = {
    {.name = "input_dimension_count", .kind = AttributeKind::kNumber},
    {.name = "indices_dimension_count", .kind = AttributeKind::kNumber},
    {.name = "batch_dimension_count", .kind = AttributeKind::kNumber, .default_text = "0"}};
constexpr SupportTable kSupport[] = {{.rows = absl::MakeConstSpan(kIndexedRows).first(2)}};

// Where the dimensions that count begin, and which the coordinates of an index stand for.
struct Parts {
  explicit Parts(const OperatorDesc& desc)
      : rank(desc.inputs[0].sizes.size()),
        input(rank - desc.number("input_dimension_count")),
        indices(rank - desc.number("indices_dimension_count")),
        batches(desc.number("batch_dimension_count")),
        coordinates(desc.inputs[1].sizes.back()) {}

  size_t rank;
  size_t input;
  size_t indices;
  size_t batches;
  size_t coordinates;
};

std::vector<MoveDim> GatheredDims(const OperatorDesc& desc) {
  const Parts parts(desc);
  const TensorDesc& input = desc.inputs[0];
  const TensorDesc& indices = desc.inputs[1];
  const std::vector<uint32_t> from = EffectiveStrides(input);
  const std::vector<uint32_t> index = EffectiveStrides(indices);
  std::vector<MoveDim> dims;
  for (size_t d = parts.indices; d + 1 < parts.rank; ++d) {
    const bool is_batch = d - parts.indices < parts.batches;
    const uint64_t stride = is_batch ? from[parts.input + d - parts.indices] : 0;
    dims.push_back({.size = indices.sizes[d], .strides = {stride, 0, index[d]}});
  }
  for (size_t d = parts.input + parts.batches + parts.coordinates; d < parts.rank; ++d) {
    dims.push_back({.size = input.sizes[d], .strides = {from[d]}});
  }
  return dims;
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  RETURN_IF_ERROR(CheckRank(desc, 1));
  RETURN_IF_ERROR(CheckRelevant(desc, 0, "input_dimension_count", 1));
  RETURN_IF_ERROR(CheckRelevant(desc, 1, "indices_dimension_count", 1));
  const uint32_t inputs = desc.number("input_dimension_count");
  const uint32_t fewest = std::min(inputs, desc.number("indices_dimension_count"));
  const Parts parts(desc);
  if (parts.batches >= fewest) {
    return InvalidField("batch_dimension_count",
                        absl::StrCat("batch_dimension_count (", parts.batches,
                                     ") is not below the number of dimensions (", fewest, ")."));
  }
  if (parts.batches + parts.coordinates > inputs) {
    const std::string field = absl::StrCat("indices.sizes[", parts.rank - 1, "]");
    return InvalidField(field, absl::StrCat(field, " (", parts.coordinates,
                                            ") is above the number of dimensions that can be "
                                            "indexed (",
                                            inputs - parts.batches, ")."));
  }
  for (size_t b = 0; b < parts.batches; ++b) {
    const uint32_t batch = desc.inputs[0].sizes[parts.input + b];
    const size_t d = parts.indices + b;
    if (desc.inputs[1].sizes[d] == batch) continue;
    const std::string field = absl::StrCat("indices.sizes[", d, "]");
    return InvalidField(field,
                        absl::StrCat(field, " is ", desc.inputs[1].sizes[d], ", but input.sizes[",
                                     parts.input + b, "] is ", batch, "."));
  }
  return InferAligned(desc, GatheredDims(desc), outputs);
}

}  // namespace

constinit const OperatorSchema kGatherNdSchema = {
    .name = "gather_nd1",
    .summary = "the parts of the input that the indices, each of several coordinates, name",
    .inputs = kInputs,
    .outputs = kMovedOutput,
    .attributes = kAttributes,
    .family = OperatorFamily::kMovement,
    .support = kSupport,
    .infer = &Infer};

std::vector<Move> GatherNdMoves(const OperatorDesc& desc) {
  const Parts parts(desc);
  const std::vector<uint32_t> from = EffectiveStrides(desc.inputs[0]);
  Move move = AlignedMove(desc, GatheredDims(desc));
  move.index_step = EffectiveStrides(desc.inputs[1]).back();
  for (size_t i = 0; i < parts.coordinates; ++i) {
    const size_t d = parts.input + parts.batches + i;
    move.indexed.push_back({.size = desc.inputs[0].sizes[d], .stride = from[d]});
  }
  return {move};
}

}  // namespace opmill
