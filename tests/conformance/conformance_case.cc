#include "tests/conformance/conformance_case.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/conformance/movement_cases.h"

namespace opmill {
namespace {

std::string TensorText(const TensorDesc& desc) {
  std::string text =
      absl::StrCat(ToString(desc.data_type), "[", absl::StrJoin(desc.sizes, ","), "]");
  if (!desc.strides.empty()) absl::StrAppend(&text, "/[", absl::StrJoin(desc.strides, ","), "]");
  return text;
}

std::string AttributeText(const AttributeSchema& attribute, const AttributeValue& value) {
  std::string text;
  AppendAttribute(attribute, value, text);
  // Lists without their brackets, as they are parsed.
  return text[0] == '[' ? text.substr(1, text.size() - 2) : text;
}

absl::Status Unreadable(absl::string_view key, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("The case has no readable ", key, " ('", text, "')."));
}

// The words of a line; each is read once, by name.
class LineReader {
 public:
  explicit LineReader(absl::string_view line) {
    for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipWhitespace())) {
      if (operator_name_.empty()) {
        operator_name_ = std::string(word);
        continue;
      }
      const std::pair<absl::string_view, absl::string_view> field =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      fields_[std::string(field.first)] = std::string(field.second);
    }
  }

  const std::string& operator_name() const { return operator_name_; }

  std::string Text(const std::string& key) const {
    const auto found = fields_.find(key);
    return found == fields_.end() ? "" : found->second;
  }

  absl::StatusOr<uint64_t> Number(const std::string& key) const {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(Text(key), &number)) return Unreadable(key, Text(key));
    return number;
  }

  absl::StatusOr<AttributeValue> Attribute(const AttributeSchema& attribute) const {
    const std::string key(attribute.name);
    absl::StatusOr<AttributeValue> value = ParseAttribute(attribute, Text(key));
    if (value.ok()) return value;
    return Unreadable(key, Text(key));
  }

  absl::StatusOr<TensorDesc> Tensor(const std::string& key) const {
    const std::string text = Text(key);
    TensorDesc desc;
    const size_t open = text.find('[');
    const size_t close = text.find(']');
    if (open == std::string::npos || close == std::string::npos) return Unreadable(key, text);
    const absl::string_view type = absl::string_view(text).substr(0, open);
    const auto named = [type](DataType t) { return ToString(t) == type; };
    const auto found = std::find_if(kAllDataTypes.begin(), kAllDataTypes.end(), named);
    if (found == kAllDataTypes.end()) return Unreadable(key, text);
    desc.data_type = *found;
    ASSIGN_OR_RETURN(desc.sizes, ParseNumbers(key, text.substr(open + 1, close - open - 1)));
    if (close + 1 == text.size()) return desc;
    if (text.compare(close, 3, "]/[") != 0 || text.back() != ']') return Unreadable(key, text);
    ASSIGN_OR_RETURN(desc.strides,
                     ParseNumbers(key, text.substr(close + 3, text.size() - close - 4)));
    return desc;
  }

 private:
  static absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& key,
                                                            const std::string& text) {
    std::vector<uint32_t> numbers;
    if (text.empty()) return numbers;
    for (absl::string_view word : absl::StrSplit(text, ',')) {
      uint32_t number = 0;
      if (!absl::SimpleAtoi(word, &number)) return Unreadable(key, text);
      numbers.push_back(number);
    }
    return numbers;
  }

  std::string operator_name_;
  std::map<std::string, std::string> fields_;
};

absl::StatusOr<OperatorDesc> ParseDesc(const LineReader& line) {
  for (const OperatorSchema* const schema : Operators()) {
    if (line.operator_name() != schema->name) continue;
    OperatorDesc desc = {.schema = schema};
    for (const TensorSchema& input : schema->inputs) {
      if (input.optional && line.Text(std::string(input.name)).empty()) break;
      ASSIGN_OR_RETURN(desc.inputs.emplace_back(), line.Tensor(std::string(input.name)));
    }
    for (const TensorSchema& output : schema->outputs) {
      ASSIGN_OR_RETURN(desc.outputs.emplace_back(), line.Tensor(std::string(output.name)));
    }
    for (const AttributeSchema& attribute : schema->attributes) {
      ASSIGN_OR_RETURN(desc.attributes.emplace_back(), line.Attribute(attribute));
    }
    return desc;
  }
  return Unreadable("operator", line.operator_name());
}

// The number of elements that one result is computed from.
uint64_t ReducedCount(const OperatorDesc& desc) {
  uint64_t count = 1;
  for (const uint32_t axis : AxesOf(desc)) count *= desc.inputs[0].sizes[axis];
  return count;
}

}  // namespace

std::string ToLine(const ConformanceCase& c) {
  const OperatorSchema& schema = *c.desc.schema;
  std::string line(schema.name);
  for (size_t i = 0; i < c.desc.inputs.size(); ++i) {
    absl::StrAppend(&line, " ", schema.inputs[i].name, "=", TensorText(c.desc.inputs[i]));
  }
  for (size_t i = 0; i < schema.outputs.size(); ++i) {
    absl::StrAppend(&line, " ", schema.outputs[i].name, "=", TensorText(*c.desc.outputs[i]));
  }
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    absl::StrAppend(&line, " ", schema.attributes[i].name, "=",
                    AttributeText(schema.attributes[i], c.desc.attributes[i]));
  }
  return absl::StrCat(line, " values=", ToString(c.values), " seed=", c.seed,
                      " view=", c.options.max_view_elements, " groups=", c.options.parallel_groups,
                      " threads=", c.options.threads);
}

absl::StatusOr<ConformanceCase> ParseLine(absl::string_view text) {
  const LineReader line(text);
  ASSIGN_OR_RETURN(const OperatorDesc desc, ParseDesc(line));
  ConformanceCase c;
  ASSIGN_OR_RETURN(c.desc, Validate(desc));
  const std::optional<ValuePattern> values = ParseValuePattern(line.Text("values"));
  if (!values.has_value()) return Unreadable("values", line.Text("values"));
  c.values = *values;
  ASSIGN_OR_RETURN(c.seed, line.Number("seed"));
  ASSIGN_OR_RETURN(c.options.max_view_elements, line.Number("view"));
  ASSIGN_OR_RETURN(const uint64_t groups, line.Number("groups"));
  ASSIGN_OR_RETURN(const uint64_t threads, line.Number("threads"));
  c.options.parallel_groups = static_cast<uint32_t>(groups);
  c.options.threads = static_cast<uint32_t>(threads);
  return c;
}

Inputs MakeInputs(const ConformanceCase& c) {
  Inputs inputs;
  for (const TensorDesc& input : c.desc.inputs) {
    const size_t i = inputs.size();
    const OperatorSchema& schema = *c.desc.schema;
    const bool has_indices =
        schema.family == OperatorFamily::kMovement && schema.inputs[i].type == TypeVariable::kOther;
    inputs.push_back(has_indices ? MakeIndices(c.desc, i, c.seed)
                                 : MakeValues(c.values, input.data_type, RequiredBytes(input),
                                              ReducedCount(c.desc), c.seed + i));
  }
  return inputs;
}

bool IsInexact(const OperatorDesc& desc) {
  if (!IsFloat(desc.inputs[0].data_type)) return false;
  if (desc.schema == &kCumulativeSummationSchema) return true;
  if (desc.schema != &kReduceSchema) return false;
  switch (desc.choice<ReduceFunction>("function")) {
    case ReduceFunction::kArgMax:
    case ReduceFunction::kArgMin:
    case ReduceFunction::kMax:
    case ReduceFunction::kMin:
      return false;
    default:
      return true;
  }
}

}  // namespace opmill
