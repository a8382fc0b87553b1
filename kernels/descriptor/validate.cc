#include "kernels/descriptor/validate.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

template <typename Enum>
absl::Status CheckEnum(Enum value, uint32_t count, absl::string_view field) {
  const uint32_t number = static_cast<uint32_t>(value);
  if (number < count) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat(field, " (", number, ") is unknown; 0 to ", count - 1, " are allowed."));
}

absl::Status CheckAxes(absl::Span<const uint32_t> axes, size_t rank) {
  if (axes.empty()) return InvalidField("axes", "axes is empty; at least 1 axis is needed.");
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string field = absl::StrCat("axes[", i, "]");
    if (axes[i] >= rank) {
      return InvalidField(
          field, absl::StrCat(field, " (", axes[i], ") is not below the dimension count (", rank,
                              ") of input."));
    }
    const auto earlier = std::find(axes.begin(), axes.begin() + i, axes[i]);
    if (earlier != axes.begin() + i) {
      return InvalidField(field, absl::StrCat(field, " (", axes[i], ") repeats axes[",
                                              earlier - axes.begin(), "]."));
    }
  }
  return absl::OkStatus();
}

// Infers an output that was left out, else checks everything about it but its data type.
absl::Status CompleteOutput(absl::string_view field, DataType inferred_type,
                            const std::vector<uint32_t>& sizes, std::optional<TensorDesc>& output) {
  if (!output.has_value()) {
    output = TensorDesc{inferred_type, sizes, {}};
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckTensor(*output, field));
  if (output->sizes.size() != sizes.size()) {
    const std::string path = absl::StrCat(field, ".sizes");
    return InvalidField(path, absl::StrCat(path, " has ", output->sizes.size(),
                                           " dimensions, but input.sizes has ", sizes.size(), "."));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (output->sizes[i] == sizes[i]) continue;
    const std::string path = absl::StrCat(field, ".sizes[", i, "]");
    return InvalidField(path, absl::StrCat(path, " is ", output->sizes[i], ", but ", sizes[i],
                                           " is what the operator writes there."));
  }
  const Overlap overlap = FindOverlap(*output);
  if (overlap == Overlap::kNone) return absl::OkStatus();
  const std::string path = absl::StrCat(field, ".strides");
  const std::string shape = absl::StrCat(path, " [", absl::StrJoin(output->strides, ","),
                                         "] with sizes [", absl::StrJoin(output->sizes, ","), "]");
  if (overlap == Overlap::kSome) {
    return InvalidField(path, absl::StrCat(shape, " put two elements of an output in one place."));
  }
  return InvalidField(path, absl::StrCat(shape,
                                         " cross too often to tell whether two elements of "
                                         "an output are put in one place."));
}

absl::Status CheckValueType(const TensorDesc& input, absl::string_view field,
                            const TensorDesc& output) {
  if (output.data_type == input.data_type) return absl::OkStatus();
  const std::string path = absl::StrCat(field, ".data_type");
  return InvalidField(
      path, absl::StrCat(path, " (", ToString(output.data_type), ") differs from input.data_type (",
                         ToString(input.data_type), ")."));
}

// INT32 is the only index type that may be too narrow: an input has at most 2^32-1 elements.
absl::Status CheckIndexRange(const TensorDesc& input, const TensorDesc& output,
                             absl::Span<const uint32_t> axes) {
  constexpr uint64_t kLargest = std::numeric_limits<int32_t>::max();
  uint64_t count = 1;
  for (const uint32_t axis : axes) count *= input.sizes[axis];
  if (output.data_type != DataType::kInt32 || count - 1 <= kLargest) return absl::OkStatus();
  return InvalidField("output.data_type", absl::StrCat("output.data_type INT32 ends at ", kLargest,
                                                       ", but indices reach ", count - 1, "."));
}

absl::Status Complete(ArgReduceDesc& desc) {
  RETURN_IF_ERROR(CheckEnum(desc.extreme, 2, "extreme"));
  RETURN_IF_ERROR(CheckEnum(desc.axis_direction, 2, "axis_direction"));
  RETURN_IF_ERROR(CheckTensor(desc.input, "input"));
  RETURN_IF_ERROR(CheckAxes(desc.axes, desc.input.sizes.size()));
  RETURN_IF_ERROR(CompleteOutput("output", DataType::kUint32,
                                 ReducedSizes(desc.input.sizes, desc.axes), desc.output));
  return CheckIndexRange(desc.input, *desc.output, desc.axes);
}

absl::Status Complete(ReduceDesc& desc) {
  RETURN_IF_ERROR(CheckEnum(desc.function, kReduceFunctionCount, "function"));
  RETURN_IF_ERROR(CheckTensor(desc.input, "input"));
  RETURN_IF_ERROR(CheckAxes(desc.axes, desc.input.sizes.size()));
  const bool gives_indices = GroupOf(desc.function) == OperatorGroup::kReduceArg;
  RETURN_IF_ERROR(CompleteOutput("output", gives_indices ? DataType::kUint32 : desc.input.data_type,
                                 ReducedSizes(desc.input.sizes, desc.axes), desc.output));
  if (gives_indices) return CheckIndexRange(desc.input, *desc.output, desc.axes);
  return CheckValueType(desc.input, "output", *desc.output);
}

absl::Status Complete(TopKDesc& desc) {
  RETURN_IF_ERROR(CheckEnum(desc.axis_direction, 2, "axis_direction"));
  RETURN_IF_ERROR(CheckTensor(desc.input, "input"));
  const size_t rank = desc.input.sizes.size();
  if (desc.axis >= rank) {
    return InvalidField(
        "axis", absl::StrCat("axis (", desc.axis, ") is not below the dimension count (", rank,
                             ") of input."));
  }
  const uint32_t axis_size = desc.input.sizes[desc.axis];
  if (desc.k == 0) return InvalidField("k", "k (0) is below 1.");
  if (desc.k > axis_size) {
    return InvalidField("k", absl::StrCat("k (", desc.k, ") is larger than the size (", axis_size,
                                          ") of axis (", desc.axis, ")."));
  }
  std::vector<uint32_t> sizes = desc.input.sizes;
  sizes[desc.axis] = desc.k;
  RETURN_IF_ERROR(CompleteOutput("output_values", desc.input.data_type, sizes, desc.output_values));
  RETURN_IF_ERROR(CheckValueType(desc.input, "output_values", *desc.output_values));
  return CompleteOutput("output_indices", DataType::kUint32, sizes, desc.output_indices);
}

absl::Status Complete(HardmaxDesc& desc) {
  RETURN_IF_ERROR(CheckTensor(desc.input, "input"));
  RETURN_IF_ERROR(CheckAxes(desc.axes, desc.input.sizes.size()));
  RETURN_IF_ERROR(CompleteOutput("output", desc.input.data_type, desc.input.sizes, desc.output));
  return CheckValueType(desc.input, "output", *desc.output);
}

// How the sentences below call the operator.
std::string FullName(const OperatorDesc& desc) {
  if (const auto* reduce = std::get_if<ReduceDesc>(&desc)) {
    return absl::StrCat("reduce ", ToString(reduce->function));
  }
  return std::string(OperatorName(desc));
}

// The output of indices, for rows that have index types.
const TensorDesc& IndexOutput(const OperatorDesc& desc) {
  if (const auto* top_k = std::get_if<TopKDesc>(&desc)) return *top_k->output_indices;
  if (const auto* reduce = std::get_if<ReduceDesc>(&desc)) return *reduce->output;
  return *std::get<ArgReduceDesc>(desc).output;
}

absl::string_view IndexField(const OperatorDesc& desc) {
  return std::holds_alternative<TopKDesc>(desc) ? "output_indices.data_type" : "output.data_type";
}

// What a row does not allow of a descriptor: the field, and "takes X, but Y is Z".
struct Breach {
  std::string field;
  std::string sentence;
};

std::optional<Breach> FindBreach(const OperatorDesc& desc, const FeatureLevelRow& row) {
  const TensorDesc& input = InputOf(desc);
  const size_t rank = input.sizes.size();
  if (rank < row.min_rank || rank > row.max_rank) {
    const std::string ranks = row.min_rank == row.max_rank
                                  ? absl::StrCat(row.min_rank)
                                  : absl::StrCat(row.min_rank, " to ", row.max_rank);
    return Breach{"input.sizes",
                  absl::StrCat("takes ", ranks, " dimensions, but input.sizes has ", rank)};
  }
  if (!row.types.Contains(input.data_type)) {
    return Breach{"input.data_type",
                  absl::StrCat("takes ", row.types.ToString(), ", but input.data_type is ",
                               ToString(input.data_type))};
  }
  if (!row.index_types.empty() && !row.index_types.Contains(IndexOutput(desc).data_type)) {
    return Breach{std::string(IndexField(desc)),
                  absl::StrCat("writes indices as ", row.index_types.ToString(), ", but ",
                               IndexField(desc), " is ", ToString(IndexOutput(desc).data_type))};
  }
  return std::nullopt;
}

// Why no row of `desc` holds at `level`: the operator is not there yet, or only its narrower
// predecessor is.
Breach FindAbsence(const OperatorDesc& desc, FeatureLevel level) {
  if (const auto* top_k = std::get_if<TopKDesc>(&desc);
      top_k != nullptr && RowAt(OperatorGroup::kTopK, level) != nullptr) {
    return {"axis_direction", "takes axis_direction DECREASING, but axis_direction is INCREASING"};
  }
  if (const auto* hardmax = std::get_if<HardmaxDesc>(&desc);
      hardmax != nullptr && RowAt(OperatorGroup::kHardmax, level) != nullptr) {
    const size_t rank = hardmax->input.sizes.size();
    if (hardmax->axes != std::vector<uint32_t>{static_cast<uint32_t>(rank - 1)}) {
      return {"axes", absl::StrCat("takes the last axis (", rank - 1, ") alone, but axes is [",
                                   absl::StrJoin(hardmax->axes, ","), "]")};
    }
    return {"input.sizes", absl::StrCat("takes at most 2 dimensions after leading sizes of 1, but "
                                        "input.sizes is [",
                                        absl::StrJoin(hardmax->input.sizes, ","), "]")};
  }
  return {"feature_level", "does not exist"};
}

absl::Status CheckLevel(const OperatorDesc& desc, FeatureLevel level) {
  const std::vector<const FeatureLevelRow*> rows = RowsFor(desc);
  if (std::optional<Breach> breach = FindBreach(desc, *rows.front()); breach.has_value()) {
    return InvalidField(breach->field, absl::StrCat(FullName(desc), " ", breach->sentence, "."));
  }
  const FeatureLevelRow* at_level = nullptr;
  const FeatureLevelRow* oldest_that_allows = nullptr;
  for (const FeatureLevelRow* row : rows) {
    if (at_level == nullptr && row->level <= level) at_level = row;
    if (!FindBreach(desc, *row).has_value()) oldest_that_allows = row;
  }
  if (oldest_that_allows->level <= level) return absl::OkStatus();
  const Breach breach =
      at_level == nullptr ? FindAbsence(desc, level) : FindBreach(desc, *at_level).value();
  return UnsupportedAtLevel(
      breach.field, absl::StrCat("At feature level ", ToString(level), " ", FullName(desc), " ",
                                 breach.sentence, "; feature level ",
                                 ToString(oldest_that_allows->level), " allows this request."));
}

}  // namespace

absl::StatusOr<OperatorDesc> Validate(OperatorDesc desc, FeatureLevel level) {
  if (!IsKnown(level)) {
    return InvalidField("feature_level",
                        absl::StrCat("feature_level (", static_cast<uint32_t>(level),
                                     ") is not a level that DirectML names."));
  }
  RETURN_IF_ERROR(std::visit([](auto& d) { return Complete(d); }, desc));
  RETURN_IF_ERROR(CheckLevel(desc, level));
  return desc;
}

}  // namespace opmill
