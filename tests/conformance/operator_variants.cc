#include "tests/conformance/operator_variants.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr std::array<uint32_t, 22> kCounts = {1,  2,  3,  4,  5,   7,   8,   9,   10,  15,   16,
                                              17, 31, 32, 33, 100, 128, 129, 256, 257, 1000, 1024};

// A number of the elements along an axis of this length.
uint32_t CountWithin(uint32_t length, Random& random) {
  const std::array<uint32_t, 3> of_length = {length, length - 1, length / 2 + 1};
  const uint32_t count = random.OneIn(4) ? random.Pick(of_length) : random.Pick(kCounts);
  return std::clamp(count, 1u, length);
}

AttributeValue ValueOf(const AttributeSchema& attribute, const AttributeValue& given,
                       const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& axes,
                       Random& random) {
  switch (attribute.kind) {
    case AttributeKind::kAxis:
      return axes.back();
    case AttributeKind::kAxes:
      return axes;
    case AttributeKind::kFlag:
      return static_cast<uint32_t>(random.Below(2));
    case AttributeKind::kNumber:
      return CountWithin(sizes[axes.back()], random);
    default:
      return given;
  }
}

// Every combination of the values of choices.
std::vector<OperatorVariant> VariantsOf(const OperatorSchema& schema) {
  std::vector<OperatorVariant> variants = {{&schema, {}}};
  for (const AttributeSchema& attribute : schema.attributes) {
    const size_t count = std::max<size_t>(attribute.choices.size(), 1);
    std::vector<OperatorVariant> longer;
    for (const OperatorVariant& variant : variants) {
      for (uint32_t choice = 0; choice < count; ++choice) {
        longer.push_back(variant);
        longer.back().attributes.emplace_back(choice);
      }
    }
    variants = std::move(longer);
  }
  return variants;
}

}  // namespace

bool OperatorVariant::has_one_axis() const {
  return std::any_of(schema->attributes.begin(), schema->attributes.end(),
                     [](const AttributeSchema& a) { return a.kind == AttributeKind::kAxis; });
}

std::vector<OperatorVariant> VariantsOf(DataType type) {
  std::vector<OperatorVariant> of_type;
  for (const OperatorSchema* const schema : Operators()) {
    if (!schema->has_own_message()) continue;
    for (OperatorVariant& variant : VariantsOf(*schema)) {
      if (NewestRow(variant.example()).types.Contains(type)) of_type.push_back(std::move(variant));
    }
  }
  return of_type;
}

absl::StatusOr<OperatorDesc> MakeDesc(
    const OperatorVariant& variant, const TensorDesc& input, const std::vector<uint32_t>& axes,
    absl::FunctionRef<std::vector<uint32_t>(const std::vector<uint32_t>& sizes)> strides_of_others,
    Random& random) {
  const OperatorSchema& schema = *variant.schema;
  OperatorDesc desc = {.schema = &schema, .inputs = {input}};
  while (desc.inputs.size() < schema.inputs.size()) {
    desc.inputs.push_back({input.data_type, input.sizes, strides_of_others(input.sizes)});
  }
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    desc.attributes.push_back(
        ValueOf(schema.attributes[i], variant.attributes[i], input.sizes, axes, random));
  }
  desc.outputs.resize(schema.outputs.size());
  ASSIGN_OR_RETURN(desc, Validate(std::move(desc)));
  std::vector<InferredOutput> inferred;
  RETURN_IF_ERROR(schema.infer(desc, inferred));
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (!inferred[i].type_is_free) continue;
    desc.outputs[i]->data_type =
        random.Pick(NewestRow(desc).TypesOf(schema.outputs[i].type).types());
  }
  return desc;
}

}  // namespace opmill
