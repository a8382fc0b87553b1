#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/half.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/movement/movement.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

absl::Status CheckSize(absl::string_view tensor, size_t dimension, uint64_t size) {
  if (size <= kMaxMoveSize) return absl::OkStatus();
  const std::string field = absl::StrCat(tensor, ".sizes[", dimension, "]");
  return InvalidField(field, absl::StrCat(field, " (", size, ") is above the limit (", kMaxMoveSize,
                                          ") of operators that move elements."));
}

}  // namespace

std::vector<const OperatorSchema*> MovementOperators() {
  return {
#define OPMILL_MOVEMENT(Name) &k##Name##Schema,
#include "kernels/operators/movement/movement_rows.inc"
#undef OPMILL_MOVEMENT
  };
}

std::vector<Move> MovesOf(const OperatorDesc& validated) {
#define OPMILL_MOVEMENT(Name) \
  if (validated.schema == &k##Name##Schema) return Name##Moves(validated);
#include "kernels/operators/movement/movement_rows.inc"
#undef OPMILL_MOVEMENT
  return {};
}

absl::Status InferSizes(const OperatorDesc& desc, const std::vector<uint64_t>& sizes,
                        std::vector<InferredOutput>& outputs) {
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    for (size_t d = 0; d < desc.inputs[i].sizes.size(); ++d) {
      RETURN_IF_ERROR(CheckSize(desc.schema->inputs[i].name, d, desc.inputs[i].sizes[d]));
    }
  }
  TensorDesc output = {.data_type = desc.inputs[0].data_type};
  for (size_t d = 0; d < sizes.size(); ++d) {
    RETURN_IF_ERROR(CheckSize("output", d, sizes[d]));
    output.sizes.push_back(static_cast<uint32_t>(sizes[d]));
  }
  RETURN_IF_ERROR(CheckTensor(output, "output"));
  outputs = {{.sizes = std::move(output.sizes), .data_type = output.data_type}};
  return absl::OkStatus();
}

absl::Status CheckEntries(const OperatorDesc& desc, absl::string_view attribute) {
  const size_t rank = desc.inputs[0].sizes.size();
  const size_t entries = std::visit(
      [](const auto& value) -> size_t {
        if constexpr (requires { value.size(); }) return value.size();
        return 0;
      },
      desc.attributes[desc.schema->AttributeIndex(attribute)]);
  if (entries == rank) return absl::OkStatus();
  return InvalidField(
      attribute, absl::StrCat(attribute, " has ", entries, entries == 1 ? " entry" : " entries",
                              ", but ", desc.schema->inputs[0].name, ".sizes has ", rank, "."));
}

absl::Status CheckSizes(const OperatorDesc& desc, size_t input, size_t other, size_t but) {
  RETURN_IF_ERROR(CheckRank(desc, input));
  const std::vector<uint32_t>& sizes = desc.inputs[input].sizes;
  const std::vector<uint32_t>& others = desc.inputs[other].sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d == but || sizes[d] == others[d]) continue;
    const std::string field = absl::StrCat(desc.schema->inputs[input].name, ".sizes[", d, "]");
    return InvalidField(
        field, absl::StrCat(field, " is ", sizes[d], ", but ", desc.schema->inputs[other].name,
                            ".sizes[", d, "] is ", others[d], "."));
  }
  return absl::OkStatus();
}

absl::Status CheckRelevant(const OperatorDesc& desc, size_t input, absl::string_view attribute,
                           uint32_t least) {
  const absl::string_view name = desc.schema->inputs[input].name;
  const std::vector<uint32_t>& sizes = desc.inputs[input].sizes;
  const uint32_t count = desc.number(attribute);
  if (count < least || count > sizes.size()) {
    return InvalidField(attribute,
                        absl::StrCat(attribute, " (", count, ") is not between ", least, " and ",
                                     sizes.size(), ", the dimension count of ", name, "."));
  }
  for (size_t d = 0; d < sizes.size() - count; ++d) {
    if (sizes[d] == 1) continue;
    const std::string field = absl::StrCat(name, ".sizes[", d, "]");
    return InvalidField(field, absl::StrCat(field, " is ", sizes[d], ", but must be 1: ", attribute,
                                            " is ", count, "."));
  }
  return absl::OkStatus();
}

absl::Status InferAligned(const OperatorDesc& desc, const std::vector<MoveDim>& dims,
                          std::vector<InferredOutput>& outputs) {
  const size_t rank = desc.inputs[0].sizes.size();
  std::vector<uint64_t> sizes;
  for (size_t i = dims.size(); i < rank; ++i) sizes.push_back(1);
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool fits = i + rank >= dims.size();
    if (fits) sizes.push_back(dims[i].size);
    if (fits || dims[i].size == 1) continue;
    return InvalidField("output.sizes",
                        absl::StrCat("output.sizes would have ", dims.size() - i,
                                     " dimensions, more than input.sizes (", rank,
                                     "); give the input leading dimensions of size 1."));
  }
  return InferSizes(desc, sizes, outputs);
}

Move AlignedMove(const OperatorDesc& desc, std::vector<MoveDim> dims) {
  const std::vector<uint32_t> to = EffectiveStrides(*desc.outputs[0]);
  const size_t cropped = dims.size() - std::min(dims.size(), to.size());
  dims.erase(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(cropped));
  for (size_t i = 0; i < dims.size(); ++i) {
    dims[i].strides[kOutputTensor] = to[to.size() - dims.size() + i];
  }
  return {.dims = std::move(dims), .index = MoveIndex::kSource, .index_input = 1};
}

Move PlainMove(const TensorDesc& input, const TensorDesc& output) {
  Move move;
  for (size_t d = 0; d < output.sizes.size(); ++d) {
    move.dims.push_back({.size = output.sizes[d], .input_size = input.sizes[d]});
  }
  SetStrides(move.dims, kInputTensor, input);
  SetStrides(move.dims, kOutputTensor, output);
  return move;
}

uint64_t ScalarBits(DataType type, const Scalar& scalar) {
  if (type == DataType::kFloat32) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::get<double>(scalar)));
  }
  if (type == DataType::kFloat16) return FloatToHalf(std::get<double>(scalar));
  if (const int64_t* const integer = std::get_if<int64_t>(&scalar)) {
    return static_cast<uint64_t>(*integer);
  }
  return std::get<uint64_t>(scalar);
}

}  // namespace opmill
