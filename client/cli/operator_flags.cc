#include "client/cli/operator_flags.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/names.h"

namespace opmill {
namespace {

// Which flags an operator takes beside its axes.
struct OperatorName {
  const char* name;
  bool has_axis_and_k;
  bool has_function;
  bool has_direction;
  bool has_index_type;
};
constexpr OperatorName kOperators[] = {
    {"argmin", false, false, true, true},    {"argmax", false, false, true, true},
    {"reduce", false, true, false, true},    {"top_k", true, false, true, true},
    {"hardmax", false, false, false, false},
};

// Too large a one passes, for the server to refuse in its own words.
uint32_t ResolveAxis(const std::string& flag, int64_t axis, int rank, FlagReader& flags) {
  const int64_t resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved > std::numeric_limits<uint32_t>::max()) {
    flags.Fail(flag, absl::StrCat("Axis ", axis, " is none of the input's; with ", rank,
                                  " dimensions they go from -", rank, " to ", rank - 1, "."));
    return 0;
  }
  return static_cast<uint32_t>(resolved);
}

template <typename Desc>
void ReadAxes(const v1::TensorDesc& input, FlagReader& flags, Desc& desc) {
  for (const int64_t axis : flags.RequiredIntegers("axes")) {
    desc.add_axes(ResolveAxis("axes", axis, input.sizes_size(), flags));
  }
}

// A packed output of `type` where one was asked for; else the server chooses.
template <typename Desc>
void ReadIndexOutput(FlagReader& flags, const v1::TensorDesc& input, Desc& desc) {
  const v1::DataType type = flags.Named("index_type", &ParseDataType, v1::DATA_TYPE_UNSPECIFIED);
  if (type == v1::DATA_TYPE_UNSPECIFIED) return;
  v1::TensorDesc& output = *desc.mutable_output();
  output.set_data_type(type);
  *output.mutable_sizes() = input.sizes();
  for (const uint32_t axis : desc.axes()) {
    if (axis < static_cast<uint32_t>(output.sizes_size())) {
      output.set_sizes(static_cast<int>(axis), 1);
    }
  }
}

template <typename Desc>
void ReadArgReduce(const v1::TensorDesc& input, FlagReader& flags, Desc& desc) {
  *desc.mutable_input() = input;
  ReadAxes(input, flags, desc);
  desc.set_axis_direction(
      flags.Named("direction", &ParseAxisDirection, v1::AXIS_DIRECTION_INCREASING));
  ReadIndexOutput(flags, input, desc);
}

void ReadReduce(const v1::TensorDesc& input, FlagReader& flags, v1::ReduceDesc& desc) {
  *desc.mutable_input() = input;
  flags.Required("function");
  desc.set_function(flags.Named("function", &ParseReduceFunction, v1::REDUCE_FUNCTION_UNSPECIFIED));
  ReadAxes(input, flags, desc);
  const bool gives_indices = desc.function() == v1::REDUCE_FUNCTION_ARGMIN ||
                             desc.function() == v1::REDUCE_FUNCTION_ARGMAX;
  if (flags.line().Has("index_type") && !gives_indices) {
    flags.Fail("index_type", "Of the functions, only argmin and argmax give indices.");
  }
  ReadIndexOutput(flags, input, desc);
}

void ReadTopK(const v1::TensorDesc& input, FlagReader& flags, v1::TopKDesc& desc) {
  *desc.mutable_input() = input;
  const std::vector<int64_t> axis = flags.RequiredIntegers("axis");
  if (axis.size() != 1) flags.Fail("axis", "top_k takes one axis.");
  desc.set_axis(ResolveAxis("axis", axis[0], input.sizes_size(), flags));
  desc.set_k(flags.RequiredNumber("k"));
  desc.set_axis_direction(
      flags.Named("direction", &ParseAxisDirection, v1::AXIS_DIRECTION_DECREASING));
  const v1::DataType type = flags.Named("index_type", &ParseDataType, v1::DATA_TYPE_UNSPECIFIED);
  if (type == v1::DATA_TYPE_UNSPECIFIED || !flags.status().ok()) return;
  v1::TensorDesc& indices = *desc.mutable_output_indices();
  indices.set_data_type(type);
  *indices.mutable_sizes() = input.sizes();
  if (desc.axis() < static_cast<uint32_t>(indices.sizes_size())) {
    indices.set_sizes(static_cast<int>(desc.axis()), desc.k());
  }
}

const OperatorName* FindOperator(const std::string& name) {
  for (const OperatorName& op : kOperators) {
    if (name == op.name) return &op;
  }
  return nullptr;
}

}  // namespace

std::vector<Flag> OperatorFlags(std::vector<Flag> own) {
  std::vector<Flag> flags = {
      {"function", "NAME", "reduce: argmax argmin average l1 l2 log_sum log_sum_exp max min",
       ReduceFunctionNames()},
      {"axes", "LIST", "all but top_k: the axes, as 0,1; negative ones count from the last"},
      {"axis", "N", "top_k: its axis"},
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
  flags[0].help += "\n" + std::string(31, ' ') + "multiply sum sum_square";
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

v1::OperatorDesc ReadOperator(const std::string& op, const v1::TensorDesc& input,
                              FlagReader& flags) {
  v1::OperatorDesc desc;
  CheckOperatorName(op, flags);
  const OperatorName* const name = FindOperator(op);
  if (name == nullptr) return desc;
  const std::pair<const char*, bool> taken[] = {
      {"axes", !name->has_axis_and_k},    {"axis", name->has_axis_and_k},
      {"k", name->has_axis_and_k},        {"function", name->has_function},
      {"direction", name->has_direction}, {"index_type", name->has_index_type}};
  for (const auto& [flag, is_taken] : taken) {
    if (!is_taken && flags.line().Has(flag)) {
      flags.Fail(flag, absl::StrCat(op, " does not take it."));
    }
  }
  if (op == "argmin") ReadArgReduce(input, flags, *desc.mutable_arg_min());
  if (op == "argmax") ReadArgReduce(input, flags, *desc.mutable_arg_max());
  if (op == "reduce") ReadReduce(input, flags, *desc.mutable_reduce());
  if (op == "top_k") ReadTopK(input, flags, *desc.mutable_top_k());
  if (op == "hardmax") {
    *desc.mutable_hardmax()->mutable_input() = input;
    ReadAxes(input, flags, *desc.mutable_hardmax());
  }
  return desc;
}

}  // namespace opmill
