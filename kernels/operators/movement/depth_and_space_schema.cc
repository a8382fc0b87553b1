// space_to_depth1 and depth_to_space1.
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr absl::string_view kOrders[] = {"DEPTH_COLUMN_ROW", "COLUMN_ROW_DEPTH"};
constexpr AttributeSchema kAttributes[] = {{.name = "block_size", .kind = AttributeKind::kNumber},
                                           {.name = "order",
                                            .kind = AttributeKind::kChoice,
                                            .choices = kOrders,
                                            .default_text = "DEPTH_COLUMN_ROW"}};
constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_1, 4, 4, kTenTypes},
                                     {FeatureLevel::k2_1, 4, 4, kEightTypes}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

absl::Status CheckDivides(size_t d, uint64_t size, uint64_t divisor, absl::string_view by) {
  if (divisor != 0 && size % divisor == 0) return absl::OkStatus();
  const std::string field = absl::StrCat("input.sizes[", d, "]");
  return InvalidField(divisor == 0 ? std::string("block_size") : field,
                      divisor == 0 ? std::string("block_size (0) is below 1.")
                                   : absl::StrCat(field, " (", size, ") is not a multiple of ", by,
                                                  " (", divisor, ")."));
}

absl::Status InferDepth(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const std::vector<uint32_t>& sizes = desc.inputs[0].sizes;
  if (sizes.size() != 4) return InferSizes(desc, {sizes.begin(), sizes.end()}, outputs);
  const uint64_t block = desc.number("block_size");
  for (const size_t d : {2, 3}) RETURN_IF_ERROR(CheckDivides(d, sizes[d], block, "block_size"));
  return InferSizes(desc, {sizes[0], sizes[1] * block * block, sizes[2] / block, sizes[3] / block},
                    outputs);
}

absl::Status InferSpace(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const std::vector<uint32_t>& sizes = desc.inputs[0].sizes;
  if (sizes.size() != 4) return InferSizes(desc, {sizes.begin(), sizes.end()}, outputs);
  const uint64_t block = desc.number("block_size");
  RETURN_IF_ERROR(CheckDivides(1, sizes[1], block * block, "the square of block_size"));
  return InferSizes(desc, {sizes[0], sizes[1] / block / block, sizes[2] * block, sizes[3] * block},
                    outputs);
}

// Where the elements of a block lie in the tensor with the space, and in the one with the depth.
struct BlockDim {
  uint64_t size;
  uint64_t space;
  uint64_t depth;
};

std::vector<BlockDim> BlockDims(const OperatorDesc& desc, const TensorDesc& space,
                                const TensorDesc& depth) {
  const uint64_t block = desc.number("block_size");
  const std::vector<uint32_t> s = EffectiveStrides(space);
  const std::vector<uint32_t> d = EffectiveStrides(depth);
  const uint64_t channels = space.sizes[1];
  const bool depth_is_last = desc.number("order") == 0;
  const uint64_t channel = depth_is_last ? d[1] : d[1] * block * block;
  const uint64_t column = depth_is_last ? d[1] * channels : d[1];
  return {{space.sizes[0], s[0], d[0]},         {channels, s[1], channel},
          {block, s[2], column * block},        {block, s[3], column},
          {depth.sizes[2], s[2] * block, d[2]}, {depth.sizes[3], s[3] * block, d[3]}};
}

constexpr OperatorSchema SchemaOf(absl::string_view name, absl::string_view summary,
                                  absl::Status (*infer)(const OperatorDesc&,
                                                        std::vector<InferredOutput>&)) {
  return {.name = name,
          .summary = summary,
          .inputs = kMovedInput,
          .outputs = kMovedOutput,
          .attributes = kAttributes,
          .family = OperatorFamily::kMovement,
          .support = kSupport,
          .infer = infer};
}

}  // namespace

constinit const OperatorSchema kSpaceToDepthSchema =
    SchemaOf("space_to_depth1", "blocks of the last two dimensions as channels", &InferDepth);
constinit const OperatorSchema kDepthToSpaceSchema =
    SchemaOf("depth_to_space1", "channels as blocks of the last two dimensions", &InferSpace);

std::vector<Move> SpaceToDepthMoves(const OperatorDesc& desc) {
  Move move;
  for (const BlockDim& dim : BlockDims(desc, desc.inputs[0], *desc.outputs[0])) {
    move.dims.push_back({.size = dim.size, .strides = {dim.space, dim.depth}});
  }
  return {move};
}

std::vector<Move> DepthToSpaceMoves(const OperatorDesc& desc) {
  Move move;
  for (const BlockDim& dim : BlockDims(desc, *desc.outputs[0], desc.inputs[0])) {
    move.dims.push_back({.size = dim.size, .strides = {dim.depth, dim.space}});
  }
  return {move};
}

}  // namespace opmill
