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
#include "kernels/descriptor/validate.h"

namespace opmill {
namespace {

std::string TensorText(const TensorDesc& desc) {
  std::string text =
      absl::StrCat(ToString(desc.data_type), "[", absl::StrJoin(desc.sizes, ","), "]");
  if (!desc.strides.empty()) absl::StrAppend(&text, "/[", absl::StrJoin(desc.strides, ","), "]");
  return text;
}

std::string DirectionText(AxisDirection direction) {
  return direction == AxisDirection::kIncreasing ? "increasing" : "decreasing";
}

struct FieldsOf {
  std::string operator()(const ArgReduceDesc& d) const {
    return absl::StrCat(" output=", TensorText(*d.output), " axes=", absl::StrJoin(d.axes, ","),
                        " direction=", DirectionText(d.axis_direction));
  }
  std::string operator()(const ReduceDesc& d) const {
    return absl::StrCat(" function=", ToString(d.function), " output=", TensorText(*d.output),
                        " axes=", absl::StrJoin(d.axes, ","));
  }
  std::string operator()(const TopKDesc& d) const {
    return absl::StrCat(" output=", TensorText(*d.output_values),
                        " indices=", TensorText(*d.output_indices), " axis=", d.axis, " k=", d.k,
                        " direction=", DirectionText(d.axis_direction));
  }
  std::string operator()(const HardmaxDesc& d) const {
    return absl::StrCat(" output=", TensorText(*d.output), " axes=", absl::StrJoin(d.axes, ","));
  }
};

absl::Status Unreadable(absl::string_view key, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("The case has no readable ", key, " ('", text, "')."));
}

// The words of a line, each read once by name.
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

  absl::StatusOr<AxisDirection> Direction() const {
    const std::string text = Text("direction");
    if (text == "increasing") return AxisDirection::kIncreasing;
    if (text == "decreasing") return AxisDirection::kDecreasing;
    return Unreadable("direction", text);
  }

  absl::StatusOr<std::vector<uint32_t>> Numbers(const std::string& key) const {
    return ParseNumbers(key, Text(key));
  }

  absl::StatusOr<ReduceFunction> Function() const {
    const std::string text = Text("function");
    for (uint32_t f = 0; f < kReduceFunctionCount; ++f) {
      const auto function = static_cast<ReduceFunction>(f);
      if (ToString(function) == text) return function;
    }
    return Unreadable("function", text);
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
  const std::string& name = line.operator_name();
  ASSIGN_OR_RETURN(const TensorDesc input, line.Tensor("input"));
  ASSIGN_OR_RETURN(const TensorDesc output, line.Tensor("output"));
  if (name == "top_k") {
    TopKDesc d;
    d.input = input;
    d.output_values = output;
    ASSIGN_OR_RETURN(d.output_indices, line.Tensor("indices"));
    ASSIGN_OR_RETURN(const uint64_t axis, line.Number("axis"));
    ASSIGN_OR_RETURN(const uint64_t k, line.Number("k"));
    ASSIGN_OR_RETURN(d.axis_direction, line.Direction());
    d.axis = static_cast<uint32_t>(axis);
    d.k = static_cast<uint32_t>(k);
    return d;
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> axes, line.Numbers("axes"));
  if (name == "argmin" || name == "argmax") {
    ASSIGN_OR_RETURN(const AxisDirection direction, line.Direction());
    return ArgReduceDesc{name == "argmin" ? Extreme::kMin : Extreme::kMax, input, output, axes,
                         direction};
  }
  if (name == "reduce") {
    ASSIGN_OR_RETURN(const ReduceFunction function, line.Function());
    return ReduceDesc{function, input, output, axes};
  }
  if (name == "hardmax") return HardmaxDesc{input, output, axes};
  return Unreadable("operator", name);
}

struct ReducedCount {
  uint64_t operator()(const TopKDesc& d) const { return d.input.sizes[d.axis]; }
  template <typename Desc>
  uint64_t operator()(const Desc& d) const {
    uint64_t count = 1;
    for (const uint32_t axis : d.axes) count *= d.input.sizes[axis];
    return count;
  }
};

}  // namespace

std::string ToLine(const ConformanceCase& c) {
  return absl::StrCat(OperatorName(c.desc), " input=", TensorText(InputOf(c.desc)),
                      std::visit(FieldsOf(), c.desc), " values=", ToString(c.values),
                      " seed=", c.seed, " view=", c.options.max_view_elements,
                      " groups=", c.options.parallel_groups, " threads=", c.options.threads,
                      " wide=", c.options.prefers_wide_rows ? 1 : 0);
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
  ASSIGN_OR_RETURN(const uint64_t wide, line.Number("wide"));
  c.options.parallel_groups = static_cast<uint32_t>(groups);
  c.options.threads = static_cast<uint32_t>(threads);
  c.options.prefers_wide_rows = wide != 0;
  return c;
}

std::string OperatorLabel(const OperatorDesc& desc) {
  const ReduceDesc* reduce = std::get_if<ReduceDesc>(&desc);
  if (reduce == nullptr) return std::string(OperatorName(desc));
  return absl::StrCat("reduce ", ToString(reduce->function));
}

std::vector<std::byte> MakeInput(const ConformanceCase& c) {
  const TensorDesc& input = InputOf(c.desc);
  return MakeValues(c.values, input.data_type, RequiredBytes(input),
                    std::visit(ReducedCount(), c.desc), c.seed);
}

bool IsInexact(const OperatorDesc& desc) {
  const ReduceDesc* reduce = std::get_if<ReduceDesc>(&desc);
  if (reduce == nullptr || !IsFloat(reduce->input.data_type)) return false;
  switch (reduce->function) {
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
