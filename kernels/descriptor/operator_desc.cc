#include "kernels/descriptor/operator_desc.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {

size_t OperatorDesc::AttributeIndex(absl::string_view attribute) const {
  return schema->AttributeIndex(attribute);
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
  std::string text;
  text.reserve(160);  // most descriptors' text
  absl::StrAppend(&text, schema.name, "(");
  const auto begin_part = [&](absl::string_view name) {
    absl::StrAppend(&text, text.back() == '(' ? "" : ", ", name, "=");
  };
  const auto add_attribute = [&](size_t i) {
    begin_part(schema.attributes[i].name);
    AppendAttribute(schema.attributes[i], desc.attributes[i], text);
  };
  if (schema.has_functions()) add_attribute(schema.function_attribute);
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    begin_part(schema.inputs[i].name);
    AppendText(desc.inputs[i], text);
  }
  for (size_t i = 0; i < desc.outputs.size(); ++i) {
    if (!desc.outputs[i].has_value()) continue;
    begin_part(schema.outputs[i].name);
    AppendText(*desc.outputs[i], text);
  }
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    if (i != schema.function_attribute) add_attribute(i);
  }
  if (desc.is_batched) absl::StrAppend(&text, ", batched");
  text.push_back(')');
  return text;
}

}  // namespace opmill
