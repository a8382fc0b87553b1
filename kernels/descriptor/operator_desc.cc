#include "kernels/descriptor/operator_desc.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {
namespace {

std::string AttributeText(const AttributeSchema& attribute, const AttributeValues& values) {
  switch (attribute.kind) {
    case AttributeKind::kAxes:
      return absl::StrCat(attribute.name, "=[", absl::StrJoin(values, ","), "]");
    case AttributeKind::kChoice:
      return absl::StrCat(attribute.name, "=", ChoiceName(attribute, values.front()));
    case AttributeKind::kFlag:
    case AttributeKind::kNumber:
    case AttributeKind::kAxis:
      break;
  }
  return absl::StrCat(attribute.name, "=", values.front());
}

}  // namespace

const AttributeValues& OperatorDesc::list(absl::string_view attribute) const {
  return attributes[schema->AttributeIndex(attribute)];
}

absl::string_view OperatorName(const OperatorDesc& desc) {
  return desc.schema == nullptr ? "none" : desc.schema->name;
}

std::vector<TensorDesc> OutputsOf(const OperatorDesc& desc) {
  std::vector<TensorDesc> outputs;
  outputs.reserve(desc.outputs.size());
  for (const std::optional<TensorDesc>& output : desc.outputs) outputs.push_back(output.value());
  return outputs;
}

std::string ToString(const OperatorDesc& desc) {
  if (desc.schema == nullptr) return "none()";
  const OperatorSchema& schema = *desc.schema;
  std::vector<std::string> parts;
  const auto add_attribute = [&](size_t i) {
    parts.push_back(AttributeText(schema.attributes[i], desc.attributes[i]));
  };
  if (schema.has_functions()) add_attribute(schema.function_attribute);
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    parts.push_back(absl::StrCat(schema.inputs[i].name, "=", ToString(desc.inputs[i])));
  }
  for (size_t i = 0; i < desc.outputs.size(); ++i) {
    if (!desc.outputs[i].has_value()) continue;
    parts.push_back(absl::StrCat(schema.outputs[i].name, "=", ToString(*desc.outputs[i])));
  }
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    if (i != schema.function_attribute) add_attribute(i);
  }
  return absl::StrCat(schema.name, "(", absl::StrJoin(parts, ", "), ")");
}

}  // namespace opmill
