#include "client/cli/operator_from_flags.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

absl::StatusOr<std::vector<uint32_t>> ResolveAxes(const OperatorChoice& choice, int64_t rank,
                                                  absl::string_view input_name) {
  std::vector<uint32_t> resolved;
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
    if (IsAxes(attribute.kind)) return &attribute;
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
  for (const AttributeSchema& attribute : schema.attributes) {
    const bool is_axes = &attribute == axes;
    desc.attributes.push_back(is_axes ? AttributeValue(std::vector<uint32_t>{0})
                                      : AttributeValue(0u));
  }
  std::vector<InferredOutput> outputs;
  return schema.infer(desc, outputs).ok() && outputs[0].sizes == std::vector<uint32_t>{1};
}

absl::string_view OutputTypeFlag(const OperatorSchema& schema) {
  for (const TensorSchema& output : schema.outputs) {
    if (output.type == TypeVariable::kIndex) return "index_type";
    if (output.type == TypeVariable::kResult) return "output_type";
  }
  return "";
}

absl::StatusOr<OperatorDesc> OperatorChoice::For(std::vector<TensorDesc> inputs,
                                                 absl::string_view input_name) const {
  OperatorDesc desc = {.schema = schema, .inputs = std::move(inputs), .attributes = attributes};
  desc.outputs.resize(schema->outputs.size());
  if (const AttributeSchema* const attribute = AxesAttribute(*schema)) {
    const int64_t rank = static_cast<int64_t>(desc.inputs[0].sizes.size());
    ASSIGN_OR_RETURN(std::vector<uint32_t> resolved, ResolveAxes(*this, rank, input_name));
    AttributeValue& value = desc.attributes[schema->AttributeIndex(attribute->name)];
    if (attribute->kind == AttributeKind::kAxis) {
      value = resolved.front();
    } else {
      value = std::move(resolved);
    }
  }
  if (output_type != DataType::kUnknown && OutputTypeFlag(*schema) == "output_type") {
    desc.outputs[0] = TensorDesc{.data_type = output_type, .sizes = desc.inputs[0].sizes};
    return desc;
  }
  std::vector<InferredOutput> inferred;
  // If no outputs can be inferred, the server will refuse the descriptor.
  if (output_type == DataType::kUnknown || !schema->infer(desc, inferred).ok()) return desc;
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (!inferred[i].type_is_free) continue;
    desc.outputs[i] = TensorDesc{.data_type = output_type, .sizes = inferred[i].sizes};
  }
  return desc;
}

}  // namespace opmill
