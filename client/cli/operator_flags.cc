#include "client/cli/operator_flags.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/encode_operator.h"
#include "client/names.h"
#include "kernels/base/nearest.h"
#include "kernels/base/npy.h"
#include "kernels/base/wrap_words.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// Help text of an attribute's flag. An attribute without a row has a flag of the same name, and a
// generated text.
struct FlagText {
  absl::string_view attribute;
  absl::string_view flag;
  absl::string_view value;
  absl::string_view help;
};
constexpr absl::string_view kHelpIndent = "                               ";
constexpr FlagText kFlagTexts[] = {
    {"axes", "axes", "LIST",
     "axes, for example 0,1; negative ones count from the last; default: all axes for\n"
     "operators that reduce, else the last one"},
    {"axis_direction", "direction", "NAME",
     "argmin, argmax: of equal elements the first (increasing, default) or the\n"
     "last (decreasing); top_k: the largest (decreasing, default) or the smallest;\n"
     "cumulative_summation: from the first element (increasing, default) or the last"},
    {"direction", "convolution_direction", "NAME",
     "convolution: forward (default), or backward: transposed"},
    {"has_exclusive_sum", "has_exclusive_sum", "",
     "cumulative_summation: leave each element out of its own sum"},
    {"k", "k", "N", "top_k, search: the number of elements"},
};

const FlagText* TextOf(absl::string_view attribute) {
  const auto* const found = absl::c_find_if(
      kFlagTexts, [&](const FlagText& text) { return text.attribute == attribute; });
  return found == std::end(kFlagTexts) ? nullptr : found;
}

// " (top_k: one)"
std::string OperatorsOfOneAxis() {
  std::vector<absl::string_view> names;
  for (const OperatorSchema* const schema : Operators()) {
    const AttributeSchema* const axes = AxesAttribute(*schema);
    if (axes != nullptr && axes->kind == AttributeKind::kAxis) names.push_back(schema->name);
  }
  return names.empty() ? "" : absl::StrCat(" (", absl::StrJoin(names, ", "), ": one)");
}

Flag MakeFlag(const AttributeSchema& attribute) {
  Flag flag = {.name = FlagOf(attribute)};
  flag.choices = ChoiceNames(attribute);
  if (const FlagText* const text = TextOf(flag.name == "axes" ? "axes" : attribute.name)) {
    flag.value = std::string(text->value);
    flag.help = absl::StrReplaceAll(text->help, {{"\n", absl::StrCat("\n", kHelpIndent)}});
    if (IsAxes(attribute.kind)) flag.help += OperatorsOfOneAxis();
    return flag;
  }
  if (attribute.kind != AttributeKind::kFlag) {
    flag.value = attribute.kind == AttributeKind::kChoice ? "NAME" : "N";
  } else if (!attribute.default_text.empty()) {
    flag.value = "BOOL";
  }
  std::vector<absl::string_view> takers;
  for (const OperatorSchema* const other : Operators()) {
    if (other->AttributeIndex(attribute.name) < other->attributes.size()) {
      takers.push_back(other->name);
    }
  }
  const std::string help =
      absl::StrCat(absl::StrJoin(takers, ", "), ": ",
                   flag.choices.empty() ? absl::StrReplaceAll(attribute.name, {{"_", " "}})
                                        : ChoiceList(attribute));
  flag.help = WrapWords(help, kHelpIndent).substr(kHelpIndent.size());
  return flag;
}

// Of all operators, without repetitions.
std::vector<Flag> AttributeFlags() {
  std::vector<Flag> flags;
  for (const OperatorSchema* const schema : Operators()) {
    for (const AttributeSchema& attribute : schema->attributes) {
      Flag flag = MakeFlag(attribute);
      if (absl::c_any_of(flags, [&](const Flag& known) { return known.name == flag.name; })) {
        continue;
      }
      flags.push_back(std::move(flag));
      if (IsAxes(attribute.kind)) flags.push_back({"axis", "LIST", "the same as --axes"});
    }
  }
  return flags;
}

void RefuseFlagsOfOtherOperators(const NamedOperator& op, FlagReader& flags) {
  const OperatorSchema& schema = *op.schema;
  std::vector<std::string> taken;
  for (const AttributeSchema& attribute : schema.attributes) {
    taken.push_back(FlagOf(attribute));
    if (IsAxes(attribute.kind)) taken.push_back("axis");
  }
  taken.emplace_back(OutputTypeFlag(schema));
  if (op.function.has_value()) {
    const std::string flag = FlagOf(schema.attributes[schema.function_attribute]);
    taken.erase(std::find(taken.begin(), taken.end(), flag));
  }
  std::vector<Flag> all = AttributeFlags();
  all.push_back({.name = "index_type"});
  all.push_back({.name = "output_type"});
  for (const Flag& flag : all) {
    if (flags.line().Get(flag.name) && !absl::c_linear_search(taken, flag.name)) {
      flags.Fail(flag.name, absl::StrCat(op.name, " does not take this flag."));
    }
  }
}

// --axes and --axis are aliases.
void ReadAxes(const AttributeSchema& attribute, FlagReader& flags, OperatorChoice& choice) {
  const bool has_axis = flags.line().Has("axis");
  choice.axes_flag = has_axis ? "axis" : "axes";
  if (has_axis && flags.line().Has("axes")) {
    flags.Fail("axis", "It is an alias of --axes; give only one of them.");
  }
  if (!has_axis && !flags.line().Has("axes")) {
    choice.has_all_axes = Reduces(*choice.schema);
    choice.axes = {-1};
    return;
  }
  choice.axes = flags.RequiredIntegers(choice.axes_flag);
  if (attribute.kind == AttributeKind::kAxis && choice.axes.size() != 1) {
    flags.Fail(choice.axes_flag, absl::StrCat(choice.schema->name, " takes exactly one axis; ",
                                              choice.axes.size(), " are given."));
  }
}

AttributeValue ReadAttribute(const AttributeSchema& attribute, FlagReader& flags,
                             OperatorChoice& choice) {
  const std::string flag = FlagOf(attribute);
  switch (attribute.kind) {
    case AttributeKind::kNumber:
      if (!attribute.default_text.empty()) break;
      return flags.RequiredNumber(flag);
    case AttributeKind::kFlag:
      if (!attribute.default_text.empty()) break;
      return flags.line().Has(flag) ? 1u : 0u;
    case AttributeKind::kChoice:
      return ReadChoice(*choice.schema, attribute, flags);
    case AttributeKind::kAxis:
    case AttributeKind::kAxes:
      ReadAxes(attribute, flags, choice);
      return {};
    default:
      break;
  }
  const std::string text =
      attribute.default_text.empty()
          ? flags.Required(flag)
          : flags.line().Get(flag).value_or(std::string(attribute.default_text));
  const absl::StatusOr<AttributeValue> value = ParseAttribute(attribute, text);
  if (!value.ok() && flags.status().ok()) {
    flags.Fail(flag, absl::StrCat("\"", text, "\" ", value.status().message(), "."));
  }
  return value.ok() ? *value : AttributeValue();
}

// Only some functions of an operator may return indices.
void CheckIndexType(const OperatorChoice& choice, FlagReader& flags) {
  const OperatorSchema& schema = *choice.schema;
  if (!flags.line().Has("index_type") || !schema.has_functions()) return;
  OperatorDesc desc = {.schema = &schema, .attributes = choice.attributes};
  if (!NewestRow(desc).result_types.empty()) return;
  const AttributeSchema& attribute = schema.attributes[schema.function_attribute];
  std::vector<std::string> names;
  for (uint32_t function = 0; function < attribute.choices.size(); ++function) {
    desc.attributes[schema.function_attribute] = function;
    if (NewestRow(desc).result_types.empty()) continue;
    names.push_back(absl::AsciiStrToLower(attribute.choices[function]));
  }
  flags.Fail("index_type", absl::StrCat("Only the functions ", absl::StrJoin(names, " and "),
                                        " return indices."));
}

}  // namespace

uint32_t ReadChoice(const OperatorSchema& schema, const AttributeSchema& attribute,
                    FlagReader& flags) {
  const std::string flag = FlagOf(attribute);
  const std::string name =
      attribute.default_text.empty()
          ? flags.Required(flag)
          : flags.line().Get(flag).value_or(std::string(attribute.default_text));
  const absl::StatusOr<uint32_t> value = ParseChoice(schema, attribute, name);
  if (!value.ok()) flags.Fail(flag, value.status().message());
  return value.value_or(0);
}

std::string FlagOf(const AttributeSchema& attribute) {
  if (IsAxes(attribute.kind)) return "axes";
  const FlagText* const text = TextOf(attribute.name);
  return std::string(text == nullptr ? attribute.name : text->flag);
}

std::vector<Flag> OperatorFlags(std::vector<Flag> own) {
  std::vector<Flag> flags = AttributeFlags();
  flags.push_back({"index_type",
                   "TYPE",
                   "type of the indices: uint32 (default), int32, uint64 or int64",
                   {"uint32", "int32", "uint64", "int64"}});
  flags.push_back({"output_type", "TYPE",
                   "cast: the type to cast to; comparisons: uint8 (default) or uint32",
                   absl::StrSplit(kDataTypeNames, ", ")});
  flags.push_back({"feature_level", "LEVEL",
                   "refuse what this DirectML feature level does not support: 5.0",
                   FeatureLevelNames()});
  flags.insert(flags.end(), own.begin(), own.end());
  return flags;
}

std::vector<Flag> TensorFlags() {
  return {{"dtype", "TYPE", "element type of the inputs: float32 (default), int8, ...",
           absl::StrSplit(kDataTypeNames, ", ")},
          {"shape", "LIST", "sizes of each input, for example 1024,1024"}};
}

TensorDesc ReadTensor(FlagReader& flags) {
  const v1::DataType type = flags.Named("dtype", &ParseDataType, v1::DATA_TYPE_FLOAT32);
  return {.data_type = static_cast<DataType>(type), .sizes = flags.RequiredSizes("shape")};
}

const NamedOperator* ReadOperatorName(const std::string& op, FlagReader& flags,
                                      absl::string_view hint) {
  const NamedOperator* const found = FindOperatorName(op);
  if (found != nullptr) return found;
  flags.FailPlain(absl::StrCat(
      op.empty() ? "An operator is required" : absl::StrCat("There is no operator \"", op, "\""),
      "; `opmill help run` lists them.", DidYouMean(op, OperatorNames()), hint));
  return nullptr;
}

OperatorChoice ReadOperatorChoice(const NamedOperator& op, FlagReader& flags) {
  OperatorChoice choice = {.schema = op.schema};
  RefuseFlagsOfOtherOperators(op, flags);
  for (size_t i = 0; i < op.schema->attributes.size(); ++i) {
    const bool is_named = op.function.has_value() && i == op.schema->function_attribute;
    choice.attributes.push_back(is_named ? AttributeValue(*op.function)
                                         : ReadAttribute(op.schema->attributes[i], flags, choice));
  }
  const std::string type_flag(OutputTypeFlag(*op.schema));
  if (!type_flag.empty()) {
    choice.output_type =
        static_cast<DataType>(flags.Named(type_flag, &ParseDataType, v1::DATA_TYPE_UNSPECIFIED));
  }
  CheckIndexType(choice, flags);
  return choice;
}

v1::OperatorDesc ReadOperator(const std::string& op, const TensorDesc& input, FlagReader& flags) {
  const NamedOperator* const name = ReadOperatorName(op, flags);
  if (name == nullptr) return {};
  const OperatorChoice choice = ReadOperatorChoice(*name, flags);
  if (!flags.status().ok()) return {};
  const absl::StatusOr<OperatorDesc> desc =
      choice.For(std::vector<TensorDesc>(name->schema->inputs.size(), input), "--shape");
  if (desc.ok()) return EncodeOperator(*desc);
  flags.FailPlain(desc.status().message());
  return {};
}

}  // namespace opmill
