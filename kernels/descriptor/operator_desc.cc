#include "kernels/descriptor/operator_desc.h"

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opmill {
namespace {

std::string AxesText(const std::vector<uint32_t>& axes) {
  return absl::StrCat("axes=[", absl::StrJoin(axes, ","), "]");
}

std::string TensorText(absl::string_view name, const std::optional<TensorDesc>& tensor) {
  return tensor.has_value() ? absl::StrCat(", ", name, "=", ToString(*tensor)) : std::string();
}

absl::string_view DirectionText(AxisDirection direction) {
  switch (direction) {
    case AxisDirection::kIncreasing:
      return "INCREASING";
    case AxisDirection::kDecreasing:
      return "DECREASING";
  }
  return "UNKNOWN";
}

std::string Arguments(const ArgReduceDesc& desc) {
  return absl::StrCat("input=", ToString(desc.input), TensorText("output", desc.output), ", ",
                      AxesText(desc.axes), ", axis_direction=", DirectionText(desc.axis_direction));
}

std::string Arguments(const ReduceDesc& desc) {
  return absl::StrCat("function=", ToString(desc.function), ", input=", ToString(desc.input),
                      TensorText("output", desc.output), ", ", AxesText(desc.axes));
}

std::string Arguments(const TopKDesc& desc) {
  return absl::StrCat("input=", ToString(desc.input),
                      TensorText("output_values", desc.output_values),
                      TensorText("output_indices", desc.output_indices), ", axis=", desc.axis,
                      ", k=", desc.k, ", axis_direction=", DirectionText(desc.axis_direction));
}

std::string Arguments(const HardmaxDesc& desc) {
  return absl::StrCat("input=", ToString(desc.input), TensorText("output", desc.output), ", ",
                      AxesText(desc.axes));
}

struct NameVisitor {
  absl::string_view operator()(const ArgReduceDesc& desc) const {
    return desc.extreme == Extreme::kMin ? "argmin" : "argmax";
  }
  absl::string_view operator()(const ReduceDesc&) const { return "reduce"; }
  absl::string_view operator()(const TopKDesc&) const { return "top_k"; }
  absl::string_view operator()(const HardmaxDesc&) const { return "hardmax"; }
};

struct OutputsVisitor {
  std::vector<TensorDesc> operator()(const TopKDesc& desc) const {
    return {desc.output_values.value(), desc.output_indices.value()};
  }
  template <typename Desc>
  std::vector<TensorDesc> operator()(const Desc& desc) const {
    return std::vector<TensorDesc>(1, desc.output.value());
  }
};

}  // namespace

size_t OperatorDescHash::operator()(const OperatorDesc& desc) const {
  // Not absl::Hash<OperatorDesc>: an abseil built for C++14 cannot hash std::variant.
  const size_t content = std::visit([](const auto& d) { return absl::HashOf(d); }, desc);
  return absl::HashOf(desc.index(), content);
}

absl::string_view ToString(ReduceFunction function) {
  switch (function) {
    case ReduceFunction::kArgMax:
      return "ARGMAX";
    case ReduceFunction::kArgMin:
      return "ARGMIN";
    case ReduceFunction::kAverage:
      return "AVERAGE";
    case ReduceFunction::kL1:
      return "L1";
    case ReduceFunction::kL2:
      return "L2";
    case ReduceFunction::kLogSum:
      return "LOG_SUM";
    case ReduceFunction::kLogSumExp:
      return "LOG_SUM_EXP";
    case ReduceFunction::kMax:
      return "MAX";
    case ReduceFunction::kMin:
      return "MIN";
    case ReduceFunction::kMultiply:
      return "MULTIPLY";
    case ReduceFunction::kSum:
      return "SUM";
    case ReduceFunction::kSumSquare:
      return "SUM_SQUARE";
  }
  return "UNKNOWN";
}

absl::string_view OperatorName(const OperatorDesc& desc) { return std::visit(NameVisitor(), desc); }

const TensorDesc& InputOf(const OperatorDesc& desc) {
  return std::visit([](const auto& d) -> const TensorDesc& { return d.input; }, desc);
}

std::vector<TensorDesc> OutputsOf(const OperatorDesc& desc) {
  return std::visit(OutputsVisitor(), desc);
}

std::string ToString(const OperatorDesc& desc) {
  return absl::StrCat(OperatorName(desc), "(",
                      std::visit([](const auto& d) { return Arguments(d); }, desc), ")");
}

}  // namespace opmill
