#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "kernels/operators/elementwise/element_wise_text.h"

namespace opmill {
namespace {

using enum DataType;

bool IsWide(DataType type) { return ElementBytes(type) == 8; }

// The HLSL type of a value.
absl::string_view ValueType(DataType type) {
  if (IsFloat(type)) return "FLOATS";
  if (IsWide(type)) return IsSigned(type) ? "LONGS" : "ULONGS";
  return IsSigned(type) ? "INTS" : "UINTS";
}

// A value whose low bits are an element of `type`.
std::string Narrowed(DataType type, const std::string& value) {
  switch (type) {
    case kInt8:
      return absl::StrCat("SignExtend8(", value, ")");
    case kInt16:
      return absl::StrCat("SignExtend16(", value, ")");
    case kUint8:
      return absl::StrCat("(", value, ") & 0xFFu");
    case kUint16:
      return absl::StrCat("(", value, ") & 0xFFFFu");
    default:
      return value;
  }
}

std::string Loaded(size_t input, DataType type, bool in_quads, bool is_one) {
  const absl::string_view how = in_quads && !is_one ? "QUAD" : "ONE";
  const uint32_t bits = 8 * ElementBytes(type);
  if (IsWide(type)) {
    return absl::StrCat(how, bits, "(", input, IsSigned(type) ? ", Longs)" : ", ULongs)");
  }
  std::string words = absl::StrCat(how, bits, "(", input, ")");
  if (type == kFloat32) return absl::StrCat("asfloat(", words, ")");
  if (type == kFloat16) return absl::StrCat("FloatOfHalf(", words, ")");
  if (IsSigned(type)) return Narrowed(type, absl::StrCat("asint(", words, ")"));
  return words;
}

// A cast of x.
std::string Cast(DataType from, DataType to) {
  if (IsFloat(to)) return "CastToFloats(x)";
  if (IsWide(to)) return IsSigned(to) ? "CastToLongs(x)" : "CastToULongs(x)";
  if (!IsFloat(from)) return IsSigned(to) ? "asint(LowWord(x))" : "LowWord(x)";
  const uint32_t bits = 8 * ElementBytes(to) - (IsSigned(to) ? 1 : 0);
  const uint64_t limit = uint64_t{1} << bits;
  return absl::StrCat(IsSigned(to) ? "CastToInts" : "CastToUints", "(x, ", limit, ".0f, ",
                      limit - 1, IsSigned(to) ? ")" : "u)");
}

std::string Expression(const Chain& chain, const ChainStep& step) {
  const ElementWiseRow& row = RowOf(step.op);
  const DataType type = chain.TypeOf(step.operands.back());
  if (row.result == ElementWiseResult::kCast) return Cast(type, step.type);
  std::string expression =
      absl::StrReplaceAll(row.expression, {{"(T)", absl::StrCat("(", ValueType(type), ")")}});
  if (row.result == ElementWiseResult::kTruth) return absl::StrCat("(UINTS)(", expression, ")");
  return expression;
}

// Declares parameter `name` of a step, from place `index` of the constants.
std::string Parameter(const AttributeSchema& attribute, DataType type, size_t name, size_t index) {
  const std::string place = absl::StrCat("c.parameters[", index / 2, "].");
  const std::string low = absl::StrCat(place, "low", index % 2);
  const bool is_choice = attribute.kind == AttributeKind::kChoice;
  const DataType as = is_choice                                 ? kUint32
                      : attribute.kind == AttributeKind::kFloat ? kFloat32
                                                                : type;
  std::string value = low;
  if (IsFloat(as)) value = absl::StrCat("asfloat(", low, ")");
  if (IsWide(as)) {
    return absl::StrCat("    ", ValueType(as), " p", name, " = ", IsSigned(as) ? "Longs" : "ULongs",
                        "((UINTS)", low, ", (UINTS)", place, "high", index % 2, ");\n");
  }
  return absl::StrCat("    ", ValueType(as), " p", name, " = (", ValueType(as), ")", value, ";\n");
}

constexpr absl::string_view kOperandNames[][3] = {{"x"}, {"a", "b"}, {"c_", "a", "b"}};

}  // namespace

std::string ChainText(const Chain& chain, const ElementwiseSpace& space, bool in_quads) {
  std::string text = "RESULT Compute(Place at) {\n";
  for (size_t i = 0; i < chain.inputs.size(); ++i) {
    const DataType type = chain.inputs[i].data_type;
    absl::StrAppend(&text, "  ", ValueType(type), " v", i, " = ",
                    Loaded(i, type, in_quads, space.row().strides[i] == 0), ";\n");
  }
  size_t parameters = 0;
  size_t value = chain.inputs.size();
  for (const ChainStep& step : chain.steps) {
    const OperatorSchema& schema = SchemaOf(step.op);
    absl::StrAppend(&text, "  ", ValueType(step.type), " v", value, ";\n  {\n");
    const auto& names = kOperandNames[static_cast<size_t>(RowOf(step.op).inputs)];
    for (size_t i = 0; i < step.operands.size(); ++i) {
      absl::StrAppend(&text, "    ", ValueType(chain.TypeOf(step.operands[i])), " ", names[i],
                      " = v", step.operands[i], ";\n");
    }
    for (size_t i = 0; i < step.parameters.size(); ++i) {
      absl::StrAppend(
          &text, Parameter(schema.attributes[i], chain.TypeOf(step.operands[0]), i, parameters++));
    }
    std::string result = Expression(chain, step);
    if (step.type == kFloat16) result = absl::StrCat("RoundToHalf(", result, ")");
    if (IsFloat(step.type)) result = absl::StrCat("Keep(", result, ")");
    absl::StrAppend(&text, "    v", value, " = ", Narrowed(step.type, result), ";\n  }\n");
    ++value;
  }
  const DataType type = chain.output.data_type;
  const std::string last = absl::StrCat("v", value - 1);
  const std::string result = type == kFloat16  ? absl::StrCat("HalfOfFloat(", last, ")")
                             : type == kInt64  ? absl::StrCat("ToUnsigned(", last, ")")
                             : type == kUint64 ? last
                                               : absl::StrCat("asuint(", last, ")");
  absl::StrAppend(&text, "  return ", result, ";\n}\n");
  return text;
}

}  // namespace opmill
