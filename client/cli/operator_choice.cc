#include "client/cli/operator_choice.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

absl::StatusOr<AttributeValues> ResolveAxes(const OperatorChoice& choice, int64_t rank,
                                            absl::string_view input_name) {
  AttributeValues resolved;
  for (uint32_t axis = 0; choice.has_all_axes && axis < rank; ++axis) resolved.push_back(axis);
  if (choice.has_all_axes) return resolved;
  for (const int64_t axis : choice.axes) {
    if (axis < -rank || axis >= rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", choice.axes_flag, ": axis ", axis, " is out of range for ", input_name,
                       ", which has ", rank, rank == 1 ? " dimension" : " dimensions", " (axes -",
                       rank, " to ", rank - 1, ")."));
    }
    const uint32_t from_first = static_cast<uint32_t>(axis < 0 ? axis + rank : axis);
    const auto earlier = std::find(resolved.begin(), resolved.end(), from_first);
    if (earlier != resolved.end()) {
      const int64_t same = choice.axes[static_cast<size_t>(earlier - resolved.begin())];
      return absl::InvalidArgumentError(absl::StrCat(
          "--", choice.axes_flag, ": axis ", axis,
          axis == same ? std::string(" is given twice.")
                       : absl::StrCat(" is the same as axis ", same, " of ", input_name, ".")));
    }
    resolved.push_back(from_first);
  }
  return resolved;
}

}  // namespace

const AttributeSchema* AxesAttribute(const OperatorSchema& schema) {
  for (const AttributeSchema& attribute : schema.attributes) {
    if (attribute.kind == AttributeKind::kAxis || attribute.kind == AttributeKind::kAxes) {
      return &attribute;
    }
  }
  return nullptr;
}

bool Reduces(const OperatorSchema& schema) {
  const AttributeSchema* const axes = AxesAttribute(schema);
  if (axes == nullptr || axes->kind != AttributeKind::kAxes) return false;
  // Determined by the shape that the schema infers for two elements.
  OperatorDesc desc = {.schema = &schema};
  desc.inputs.assign(schema.inputs.size(), {.data_type = DataType::kFloat32, .sizes = {2}});
  desc.outputs.resize(schema.outputs.size());
  desc.attributes.assign(schema.attributes.size(), {0});
  std::vector<InferredOutput> outputs;
  return schema.infer(desc, outputs).ok() && outputs[0].sizes == std::vector<uint32_t>{1};
}

bool HasIndices(const OperatorSchema& schema) {
  return std::any_of(schema.outputs.begin(), schema.outputs.end(),
                     [](const TensorSchema& output) { return output.holds_indices; });
}

absl::StatusOr<OperatorDesc> OperatorChoice::For(std::vector<TensorDesc> inputs,
                                                 absl::string_view input_name) const {
  OperatorDesc desc = {.schema = schema, .inputs = std::move(inputs), .attributes = attributes};
  desc.outputs.resize(schema->outputs.size());
  if (const AttributeSchema* const attribute = AxesAttribute(*schema)) {
    const int64_t rank = static_cast<int64_t>(desc.inputs[0].sizes.size());
    ASSIGN_OR_RETURN(desc.attributes[schema->AttributeIndex(attribute->name)],
                     ResolveAxes(*this, rank, input_name));
  }
  std::vector<InferredOutput> inferred;
  // If no outputs can be inferred, the server will refuse the descriptor.
  if (index_type == DataType::kUnknown || !schema->infer(desc, inferred).ok()) return desc;
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (!inferred[i].holds_indices) continue;
    desc.outputs[i] = TensorDesc{.data_type = index_type, .sizes = inferred[i].sizes};
  }
  return desc;
}

}  // namespace opmill
