#include "client/cli/operator_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "client/names.h"

namespace opmill {
namespace {

// Which flags an operator takes beside its axes.
struct OperatorName {
  const char* name;
  bool has_k;
  bool has_function;
  bool has_direction;
  bool has_index_type;
  bool reduces;
};
constexpr OperatorName kOperators[] = {
    {"argmin", false, false, true, true, true},     {"argmax", false, false, true, true, true},
    {"reduce", false, true, false, true, true},     {"top_k", true, false, true, true, false},
    {"hardmax", false, false, false, false, false},
};

const OperatorName* FindOperator(const std::string& name) {
  for (const OperatorName& op : kOperators) {
    if (name == op.name) return &op;
  }
  return nullptr;
}

// --axes and --axis are one flag with two names.
void ReadAxes(FlagReader& flags, OperatorChoice& choice) {
  const bool has_axis = flags.line().Has("axis");
  choice.axes_flag = has_axis ? "axis" : "axes";
  if (has_axis && flags.line().Has("axes")) {
    flags.Fail("axis", "It is another name of --axes, which is given as well.");
  }
  choice.axes = flags.RequiredIntegers(choice.axes_flag);
  if (choice.name == "top_k" && choice.axes.size() != 1) {
    flags.Fail(choice.axes_flag,
               absl::StrCat("top_k takes exactly one axis; ", choice.axes.size(), " are given."));
  }
}

absl::StatusOr<std::vector<uint32_t>> ResolveAxes(const OperatorChoice& choice, int rank,
                                                  absl::string_view input_name) {
  std::vector<uint32_t> resolved;
  for (size_t i = 0; i < choice.axes.size(); ++i) {
    const int64_t axis = choice.axes[i];
    if (axis < -rank || axis >= rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", choice.axes_flag, ": axis ", axis, " is out of range for ", input_name,
                       ", which has ", rank, rank == 1 ? " dimension" : " dimensions", " (axes -",
                       rank, " to ", rank - 1, ")."));
    }
    const uint32_t from_first = static_cast<uint32_t>(axis < 0 ? axis + rank : axis);
    const auto earlier = std::find(resolved.begin(), resolved.end(), from_first);
    if (earlier != resolved.end()) {
      const int64_t same = choice.axes[static_cast<size_t>(earlier - resolved.begin())];
      return absl::InvalidArgumentError(absl::StrCat(
          "--", choice.axes_flag, ": axis ", axis,
          axis == same ? std::string(" is given twice.")
                       : absl::StrCat(" is the same as axis ", same, " of ", input_name, ".")));
    }
    resolved.push_back(from_first);
  }
  return resolved;
}

// Packed, with this size along the axes.
v1::TensorDesc IndexOutput(v1::DataType type, const v1::TensorDesc& input,
                           absl::Span<const uint32_t> axes, uint32_t size) {
  v1::TensorDesc output;
  output.set_data_type(type);
  *output.mutable_sizes() = input.sizes();
  for (const uint32_t axis : axes) output.set_sizes(static_cast<int>(axis), size);
  return output;
}

}  // namespace

std::vector<Flag> OperatorFlags(std::vector<Flag> own) {
  std::vector<Flag> flags = {
      {"function", "NAME", "reduce: argmax argmin average (or mean) l1 l2 log_sum log_sum_exp",
       ReduceFunctionNames()},
      {"axes", "LIST", "the axes, as 0,1; negative ones count from the last. top_k takes one"},
      {"axis", "LIST", "the same"},
      {"k", "N", "top_k: how many"},
      {"direction",
       "NAME",
       "argmin, argmax: increasing (first of equals), decreasing (last)",
       {"increasing", "decreasing"}},
      {"index_type",
       "TYPE",
       "of indices: uint32 (default), int32, uint64 or int64",
       {"uint32", "int32", "uint64", "int64"}},
      {"feature_level", "LEVEL", "hold the call to a DirectML feature level, as 5.0",
       FeatureLevelNames()},
  };
  flags[0].help +=
      "\n" + std::string(31, ' ') + "(or lse, logsumexp) max min multiply (or prod) sum sum_square";
  flags[4].help += "\n" + std::string(31, ' ') + "top_k: decreasing (largest), increasing";
  flags.insert(flags.end(), own.begin(), own.end());
  return flags;
}

std::vector<Flag> TensorFlags() {
  return {{"dtype", "TYPE", "of the input's elements: float32 (default), int8, ...",
           absl::StrSplit(kDataTypeNames, ", ")},
          {"shape", "LIST", "the input's sizes, as 1024,1024"}};
}

std::vector<std::string> OperatorNames() {
  std::vector<std::string> names;
  for (const OperatorName& op : kOperators) names.push_back(op.name);
  return names;
}

v1::TensorDesc ReadTensor(FlagReader& flags) {
  v1::TensorDesc tensor;
  tensor.set_data_type(flags.Named("dtype", &ParseDataType, v1::DATA_TYPE_FLOAT32));
  for (const uint32_t size : flags.RequiredSizes("shape")) tensor.add_sizes(size);
  return tensor;
}

void CheckOperatorName(const std::string& op, FlagReader& flags) {
  if (FindOperator(op) != nullptr) return;
  const std::vector<std::string> names = OperatorNames();
  const std::string list = absl::StrCat("; there are ", absl::StrJoin(names, ", "), ".");
  flags.FailPlain(
      op.empty() ? absl::StrCat("An operator is needed", list)
                 : absl::StrCat("There is no operator \"", op, "\"", list, DidYouMean(op, names)));
}

OperatorChoice ReadOperatorChoice(const std::string& op, FlagReader& flags) {
  OperatorChoice choice;
  CheckOperatorName(op, flags);
  const OperatorName* const name = FindOperator(op);
  if (name == nullptr) return choice;
  const std::pair<const char*, bool> taken[] = {{"k", name->has_k},
                                                {"function", name->has_function},
                                                {"direction", name->has_direction},
                                                {"index_type", name->has_index_type}};
  for (const auto& [flag, is_taken] : taken) {
    if (!is_taken && flags.line().Has(flag)) {
      flags.Fail(flag, absl::StrCat(op, " does not take it."));
    }
  }
  choice.name = op;
  choice.reduces = name->reduces;
  if (name->has_function) {
    flags.Required("function");
    choice.function =
        flags.Named("function", &ParseReduceFunction, v1::REDUCE_FUNCTION_UNSPECIFIED);
  }
  ReadAxes(flags, choice);
  if (name->has_k) choice.k = flags.RequiredNumber("k");
  choice.direction =
      flags.Named("direction", &ParseAxisDirection,
                  name->has_k ? v1::AXIS_DIRECTION_DECREASING : v1::AXIS_DIRECTION_INCREASING);
  choice.index_type = flags.Named("index_type", &ParseDataType, v1::DATA_TYPE_UNSPECIFIED);
  const bool gives_indices = choice.function == v1::REDUCE_FUNCTION_ARGMIN ||
                             choice.function == v1::REDUCE_FUNCTION_ARGMAX;
  if (name->has_function && flags.line().Has("index_type") && !gives_indices) {
    flags.Fail("index_type", "Of the functions, only argmin and argmax give indices.");
  }
  return choice;
}

absl::StatusOr<v1::OperatorDesc> OperatorChoice::For(const v1::TensorDesc& input,
                                                     absl::string_view input_name) const {
  const absl::StatusOr<std::vector<uint32_t>> resolved =
      ResolveAxes(*this, input.sizes_size(), input_name);
  if (!resolved.ok()) return resolved.status();
  const bool has_index_type = index_type != v1::DATA_TYPE_UNSPECIFIED;
  const auto fill = [&](auto& to) {
    *to.mutable_input() = input;
    to.mutable_axes()->Add(resolved->begin(), resolved->end());
  };
  const auto fill_reduction = [&](auto& to) {
    fill(to);
    if (has_index_type) *to.mutable_output() = IndexOutput(index_type, input, *resolved, 1);
  };
  const auto fill_arg = [&](auto& to) {
    fill_reduction(to);
    to.set_axis_direction(direction);
  };
  v1::OperatorDesc desc;
  if (name == "argmin") fill_arg(*desc.mutable_arg_min());
  if (name == "argmax") fill_arg(*desc.mutable_arg_max());
  if (name == "hardmax") fill(*desc.mutable_hardmax());
  if (name == "reduce") {
    fill_reduction(*desc.mutable_reduce());
    desc.mutable_reduce()->set_function(function);
  }
  if (name == "top_k") {
    v1::TopKDesc& top_k = *desc.mutable_top_k();
    *top_k.mutable_input() = input;
    top_k.set_axis(resolved->at(0));
    top_k.set_k(k);
    top_k.set_axis_direction(direction);
    if (has_index_type) {
      *top_k.mutable_output_indices() = IndexOutput(index_type, input, *resolved, k);
    }
  }
  return desc;
}

v1::OperatorDesc ReadOperator(const std::string& op, const v1::TensorDesc& input,
                              FlagReader& flags) {
  const OperatorChoice choice = ReadOperatorChoice(op, flags);
  if (!flags.status().ok()) return {};
  absl::StatusOr<v1::OperatorDesc> desc = choice.For(input, "--shape");
  if (desc.ok()) return *std::move(desc);
  flags.FailPlain(desc.status().message());
  return {};
}

}  // namespace opmill
