#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/elementwise/element_wise_support.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

using enum ElementWiseInputs;
using enum ElementWiseResult;

constexpr TensorSchema kUnaryInputs[] = {{.name = "input"}};
constexpr TensorSchema kBinaryInputs[] = {{.name = "a"}, {.name = "b"}};
constexpr TensorSchema kIfInputs[] = {
    {.name = "condition", .type = TypeVariable::kOther}, {.name = "a"}, {.name = "b"}};
constexpr TensorSchema kSameOutputs[] = {{.name = "output"}};
constexpr TensorSchema kFreeOutputs[] = {{.name = "output", .type = TypeVariable::kResult}};

constexpr ElementWiseRow kRows[] = {
#define OPMILL_ELEMENT_WISE(inputs, Name, name, alias, summary, support, result, attributes, ulps, \
                            ...)                                                                   \
  {inputs, result, ulps, #__VA_ARGS__},
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
};

constexpr absl::Span<const TensorSchema> InputsOf(ElementWiseInputs inputs) {
  return inputs == kUnary    ? absl::MakeConstSpan(kUnaryInputs)
         : inputs == kBinary ? absl::MakeConstSpan(kBinaryInputs)
                             : absl::MakeConstSpan(kIfInputs);
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs);

#define OPMILL_ELEMENT_WISE(inputs, Name, name, alias, summary, support, ...) \
  constexpr SupportTable k##Name##Support[] = {{.rows = support}};
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE

// Only element_wise_add has a message of its own.
constexpr OperatorSchema kSchemas[] = {
#define OPMILL_ELEMENT_WISE(inputs_, Name, name_, alias_, summary_, support_, result_,          \
                            attributes_, ...)                                                   \
  {.name = #name_,                                                                              \
   .alias = #alias_,                                                                            \
   .wire_name = absl::string_view(#name_) == "element_wise_add" ? #name_ : absl::string_view(), \
   .summary = summary_,                                                                         \
   .inputs = InputsOf(inputs_),                                                                 \
   .outputs = support_[0].result_types.empty() ? absl::MakeConstSpan(kSameOutputs)              \
                                               : absl::MakeConstSpan(kFreeOutputs),             \
   .attributes = attributes_,                                                                   \
   .family = OperatorFamily::kElementWise,                                                      \
   .support = k##Name##Support,                                                                 \
   .infer = &Infer},
#include "kernels/operators/elementwise/element_wise_rows.inc"
#undef OPMILL_ELEMENT_WISE
};

// The type of the output, or the default if the caller may choose it.
DataType ResultType(const OperatorDesc& desc) {
  if (desc.schema->outputs[0].type == TypeVariable::kValue) return desc.inputs.back().data_type;
  if (RowOf(*ElementWiseOpOf(*desc.schema)).result != kCast) return kUint8;
  return desc.outputs[0].has_value() ? desc.outputs[0]->data_type : kUnknown;
}

// Checks that an input has the sizes of the first one and the type of the others.
absl::Status CheckInput(const OperatorDesc& desc, size_t i) {
  const absl::Span<const TensorSchema> names = desc.schema->inputs;
  const TensorDesc& a = desc.inputs[0];
  const TensorDesc& b = desc.inputs[i];
  RETURN_IF_ERROR(CheckRank(desc, i));
  for (size_t d = 0; d < a.sizes.size(); ++d) {
    if (b.sizes[d] == a.sizes[d]) continue;
    const std::string field = absl::StrCat(names[i].name, ".sizes[", d, "]");
    return InvalidField(field, absl::StrCat(field, " is ", b.sizes[d], ", but ", names[0].name,
                                            ".sizes[", d, "] is ", a.sizes[d], "."));
  }
  const size_t before = i - 1;
  if (names[before].type != names[i].type) return absl::OkStatus();
  return CheckType(desc, i, before);
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  for (size_t i = 1; i < desc.inputs.size(); ++i) RETURN_IF_ERROR(CheckInput(desc, i));
  const DataType type = ResultType(desc);
  if (type == kUnknown) {
    return InvalidField("output", "output is not given; its type is the type to cast to.");
  }
  outputs = {{.sizes = desc.inputs[0].sizes,
              .data_type = type,
              .type_is_free = desc.schema->outputs[0].type != TypeVariable::kValue}};
  return absl::OkStatus();
}

}  // namespace

const ElementWiseRow& RowOf(ElementWiseOp op) { return kRows[static_cast<size_t>(op)]; }

const OperatorSchema& SchemaOf(ElementWiseOp op) { return kSchemas[static_cast<size_t>(op)]; }

std::optional<ElementWiseOp> ElementWiseOpOf(const OperatorSchema& schema) {
  const ptrdiff_t index = &schema - kSchemas;
  if (index < 0 || index >= static_cast<ptrdiff_t>(kElementWiseOps)) return std::nullopt;
  return static_cast<ElementWiseOp>(index);
}

std::vector<const OperatorSchema*> ElementWiseOperators() {
  std::vector<const OperatorSchema*> schemas;
  for (const OperatorSchema& schema : kSchemas) schemas.push_back(&schema);
  return schemas;
}

ElementWiseAddDesc::operator OperatorDesc() const {
  return {.schema = &SchemaOf(ElementWiseOp::kAdd), .inputs = {a, b}, .outputs = {output}};
}

ElementWiseAddDesc ElementWiseAddDesc::From(const OperatorDesc& desc) {
  return {.a = desc.inputs[0], .b = desc.inputs[1], .output = desc.outputs[0]};
}

}  // namespace opmill
