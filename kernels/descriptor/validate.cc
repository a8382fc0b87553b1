#include "kernels/descriptor/validate.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {
namespace {

absl::Status CheckChoice(const AttributeSchema& attribute, uint32_t value) {
  if (value < attribute.choices.size()) return absl::OkStatus();
  return InvalidField(attribute.name,
                      absl::StrCat(attribute.name, " (", value, ") is unknown; 0 to ",
                                   attribute.choices.size() - 1, " are allowed."));
}

absl::Status CheckAxis(const std::string& field, uint32_t axis, size_t rank,
                       absl::string_view input) {
  if (axis < rank) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(field, " (", axis, ") is not below the dimension count (",
                                          rank, ") of ", input, "."));
}

// Axes are a set: removes repeated entries.
absl::Status CompleteAxes(absl::string_view name, size_t rank, absl::string_view input,
                          std::vector<uint32_t>& axes) {
  std::vector<uint32_t> distinct;
  for (size_t i = 0; i < axes.size(); ++i) {
    RETURN_IF_ERROR(CheckAxis(absl::StrCat(name, "[", i, "]"), axes[i], rank, input));
    if (!absl::c_linear_search(distinct, axes[i])) distinct.push_back(axes[i]);
  }
  axes = std::move(distinct);
  return absl::OkStatus();
}

absl::Status CheckFloat(const AttributeSchema& attribute, float value) {
  if (!std::isnan(value)) return absl::OkStatus();
  return InvalidField(attribute.name, absl::StrCat(attribute.name, " is NaN."));
}

absl::Status CheckValue(const AttributeSchema& attribute, const AttributeValue& value) {
  if (attribute.kind == AttributeKind::kChoice) {
    return CheckChoice(attribute, std::get<uint32_t>(value));
  }
  if (attribute.kind == AttributeKind::kFloat) {
    return CheckFloat(attribute, std::get<float>(value));
  }
  if (attribute.kind == AttributeKind::kFloatNumbers) {
    for (const float each : std::get<std::vector<float>>(value)) {
      RETURN_IF_ERROR(CheckFloat(attribute, each));
    }
  }
  return absl::OkStatus();
}

// Checks each attribute, and axes against the first input.
absl::Status CheckParts(OperatorDesc& desc) {
  const OperatorSchema& schema = *desc.schema;
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    RETURN_IF_ERROR(CheckValue(schema.attributes[i], desc.attributes[i]));
  }
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckTensor(desc.inputs[i], schema.inputs[i].name));
  }
  const size_t rank = desc.inputs[0].sizes.size();
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    const AttributeSchema& attribute = schema.attributes[i];
    if (attribute.kind == AttributeKind::kAxis) {
      RETURN_IF_ERROR(CheckAxis(std::string(attribute.name), std::get<uint32_t>(desc.attributes[i]),
                                rank, schema.inputs[0].name));
    }
    if (attribute.kind == AttributeKind::kAxes) {
      RETURN_IF_ERROR(CompleteAxes(attribute.name, rank, schema.inputs[0].name,
                                   std::get<std::vector<uint32_t>>(desc.attributes[i])));
    }
  }
  return absl::OkStatus();
}

// Infers an omitted output; otherwise checks everything except its data type.
absl::Status CompleteOutput(absl::string_view field, const InferredOutput& inferred,
                            absl::string_view input, std::optional<TensorDesc>& output) {
  const std::vector<uint32_t>& sizes = inferred.sizes;
  if (!output.has_value()) {
    output = TensorDesc{inferred.data_type, sizes, {}};
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckTensor(*output, field));
  if (output->sizes.size() != sizes.size()) {
    const std::string path = absl::StrCat(field, ".sizes");
    return InvalidField(path, absl::StrCat(path, " has ", output->sizes.size(), " dimensions, but ",
                                           input, ".sizes has ", sizes.size(), "."));
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

// An output of values has the type of the first input, if it is inferred so.
absl::Status CheckValueType(absl::string_view input_field, const TensorDesc& input, DataType type,
                            absl::string_view field, const TensorDesc& output) {
  if (output.data_type == type) return absl::OkStatus();
  const std::string path = absl::StrCat(field, ".data_type");
  if (type != input.data_type) {
    return InvalidField(path, absl::StrCat(path, " (", ToString(output.data_type), ") is not ",
                                           ToString(type), ", which the operator writes."));
  }
  return InvalidField(
      path, absl::StrCat(path, " (", ToString(output.data_type), ") differs from ", input_field,
                         ".data_type (", ToString(input.data_type), ")."));
}

// The range of an integer type, in a sentence.
template <typename Wide>
absl::Status OutOfRange(absl::string_view name, absl::string_view value, DataType type, Wide low,
                        Wide high) {
  return InvalidField(name, absl::StrCat(name, " (", value, ") is not a number of ", ToString(type),
                                         ": an integer from ", low, " to ", high, "."));
}

// Converts a scalar to the type of the first output.
absl::Status CompleteScalar(const AttributeSchema& attribute, DataType type,
                            AttributeValue& value) {
  Scalar& scalar = std::get<Scalar>(value);
  std::string text;
  AppendAttribute(attribute, value, text);
  if (IsFloat(type)) {
    scalar = std::visit([](auto number) { return static_cast<double>(number); }, scalar);
    if (!std::isnan(std::get<double>(scalar))) return absl::OkStatus();
    return InvalidField(attribute.name, absl::StrCat(attribute.name, " is NaN."));
  }
  const uint32_t bits = 8 * ElementBytes(type);
  const uint64_t* const large = std::get_if<uint64_t>(&scalar);
  const int64_t* const integer = std::get_if<int64_t>(&scalar);
  const bool is_negative = integer != nullptr && *integer < 0;
  const uint64_t magnitude = large != nullptr     ? *large
                             : integer == nullptr ? 0
                             : is_negative        ? -static_cast<uint64_t>(*integer)
                                                  : static_cast<uint64_t>(*integer);
  const bool is_integer = large != nullptr || integer != nullptr;
  if (IsSigned(type)) {
    const uint64_t limit = uint64_t{1} << (bits - 1);
    if (is_integer && magnitude <= limit - (is_negative ? 0 : 1)) {
      scalar = static_cast<int64_t>(is_negative ? -magnitude : magnitude);
      return absl::OkStatus();
    }
    return OutOfRange(attribute.name, text, type, static_cast<int64_t>(-limit),
                      static_cast<int64_t>(limit - 1));
  }
  const uint64_t limit = ~uint64_t{0} >> (64 - bits);
  if (is_integer && !is_negative && magnitude <= limit) {
    scalar = magnitude;
    return absl::OkStatus();
  }
  return OutOfRange(attribute.name, text, type, uint64_t{0}, limit);
}

absl::Status CompleteOutputs(OperatorDesc& desc) {
  const OperatorSchema& schema = *desc.schema;
  const absl::string_view input = schema.inputs[0].name;
  std::vector<InferredOutput> inferred;
  RETURN_IF_ERROR(schema.infer(desc, inferred));
  for (size_t i = 0; i < schema.outputs.size(); ++i) {
    const absl::string_view field = schema.outputs[i].name;
    RETURN_IF_ERROR(CompleteOutput(field, inferred[i], input, desc.outputs[i]));
    if (inferred[i].type_is_free) continue;
    RETURN_IF_ERROR(
        CheckValueType(input, desc.inputs[0], inferred[i].data_type, field, *desc.outputs[i]));
  }
  for (size_t i = 0; i < schema.attributes.size(); ++i) {
    if (schema.attributes[i].kind != AttributeKind::kScalar) continue;
    RETURN_IF_ERROR(
        CompleteScalar(schema.attributes[i], desc.outputs[0]->data_type, desc.attributes[i]));
  }
  return absl::OkStatus();
}

std::optional<Breach> FindBreach(const OperatorDesc& desc, const FeatureLevelRow& row) {
  const OperatorSchema& schema = *desc.schema;
  const absl::string_view name = schema.inputs[0].name;
  const size_t rank = desc.inputs[0].sizes.size();
  if (rank < row.min_rank || rank > row.max_rank) {
    const std::string ranks = row.min_rank == row.max_rank
                                  ? absl::StrCat(row.min_rank)
                                  : absl::StrCat(row.min_rank, " to ", row.max_rank);
    return Breach{absl::StrCat(name, ".sizes"),
                  absl::StrCat("takes ", ranks, " dimensions, but ", name, ".sizes has ", rank)};
  }
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    const DataTypeSet types = row.TypesOf(schema.inputs[i].type);
    if (types.Contains(desc.inputs[i].data_type)) continue;
    const std::string field = absl::StrCat(schema.inputs[i].name, ".data_type");
    return Breach{field, absl::StrCat("takes ", types.ToString(), ", but ", field, " is ",
                                      ToString(desc.inputs[i].data_type))};
  }
  if (row.result_types.empty()) return std::nullopt;
  for (size_t i = 0; i < schema.outputs.size(); ++i) {
    if (schema.outputs[i].type == TypeVariable::kValue) continue;
    const DataType type = desc.outputs[i]->data_type;
    if (row.result_types.Contains(type)) continue;
    const std::string field = absl::StrCat(schema.outputs[i].name, ".data_type");
    const absl::string_view writes =
        schema.outputs[i].type == TypeVariable::kIndex ? "writes indices as " : "writes ";
    return Breach{field, absl::StrCat(writes, row.result_types.ToString(), ", but ", field, " is ",
                                      ToString(type))};
  }
  return std::nullopt;
}

// Why no row supports `desc` at `level`: the operator does not exist yet, or only its narrower
// predecessor does.
Breach FindAbsence(const OperatorDesc& desc, FeatureLevel level) {
  for (const SupportTable& table : desc.schema->support) {
    if (table.find_breach == nullptr || RowAt(table, level) == nullptr) continue;
    if (std::optional<Breach> breach = table.find_breach(desc); breach.has_value()) return *breach;
  }
  return {"feature_level", "does not exist"};
}

absl::Status CheckLevel(const OperatorDesc& desc, FeatureLevel level) {
  const auto rows = RowsFor(desc);
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
  RETURN_IF_ERROR(CheckParts(desc));
  RETURN_IF_ERROR(CompleteOutputs(desc));
  RETURN_IF_ERROR(CheckLevel(desc, level));
  return desc;
}

}  // namespace opmill
