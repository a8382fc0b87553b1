#include "kernels/descriptor/operator_schema.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

bool IsAbout(const SupportTable& table, const OperatorDesc& desc) {
  if (!desc.schema->has_functions()) return true;
  const uint32_t function = std::get<uint32_t>(desc.attributes[desc.schema->function_attribute]);
  return (table.functions >> function & 1) != 0;
}

}  // namespace

size_t OperatorSchema::AttributeIndex(absl::string_view attribute) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(),
                   [&](const AttributeSchema& each) { return each.name == attribute; });
  return static_cast<size_t>(found - attributes.begin());
}

size_t OperatorSchema::RowLengthIndex() const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(),
                   [](const AttributeSchema& each) { return each.longest_row != nullptr; });
  return static_cast<size_t>(found - attributes.begin());
}

absl::string_view ChoiceName(const AttributeSchema& attribute, uint32_t value) {
  return value < attribute.choices.size() ? attribute.choices[value] : "UNKNOWN";
}

size_t OperatorSchema::required_inputs() const {
  return static_cast<size_t>(std::count_if(
      inputs.begin(), inputs.end(), [](const TensorSchema& input) { return !input.optional; }));
}

std::vector<uint32_t> AxesOf(const OperatorDesc& desc) {
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    const AttributeKind kind = desc.schema->attributes[i].kind;
    if (kind == AttributeKind::kAxis) return {std::get<uint32_t>(desc.attributes[i])};
    if (kind == AttributeKind::kAxes) return std::get<std::vector<uint32_t>>(desc.attributes[i]);
  }
  return {};
}

std::string FullName(const OperatorDesc& desc) {
  const OperatorSchema& schema = *desc.schema;
  if (!schema.has_functions()) return std::string(schema.name);
  const size_t function = schema.function_attribute;
  return absl::StrCat(
      schema.name, " ",
      ChoiceName(schema.attributes[function], std::get<uint32_t>(desc.attributes[function])));
}

const FeatureLevelRow& NewestRow(const OperatorDesc& desc) {
  const absl::Span<const SupportTable> support = desc.schema->support;
  return std::find_if(support.begin(), support.end(),
                      [&](const SupportTable& table) { return IsAbout(table, desc); })
      ->rows.front();
}

const FeatureLevelRow* RowAt(const SupportTable& table, FeatureLevel level) {
  for (const FeatureLevelRow& row : table.rows) {
    if (row.level <= level) return &row;
  }
  return nullptr;
}

absl::InlinedVector<const FeatureLevelRow*, 8> RowsFor(const OperatorDesc& desc) {
  absl::InlinedVector<const FeatureLevelRow*, 8> rows;
  for (const SupportTable& table : desc.schema->support) {
    if (!IsAbout(table, desc)) continue;
    if (table.find_breach != nullptr && table.find_breach(desc).has_value()) continue;
    for (const FeatureLevelRow& row : table.rows) rows.push_back(&row);
  }
  return rows;
}

}  // namespace opmill
