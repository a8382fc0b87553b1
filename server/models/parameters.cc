#include "server/models/parameters.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/validate.h"
#include "server/models/data_types.h"

namespace opmill {
namespace {

constexpr absl::string_view kIndexType = "index_type";
constexpr absl::string_view kOutputType = "output_type";
constexpr absl::string_view kFeatureLevel = "feature_level";

// "direction" for axis_direction.
absl::string_view ShortName(const AttributeSchema& attribute) {
  return absl::StripPrefix(attribute.name, "axis_");
}

// The parameter that chooses the type of outputs; empty if none is free.
absl::string_view OutputTypeName(const OperatorSchema& schema) {
  for (const TensorSchema& output : schema.outputs) {
    if (output.type == TypeVariable::kIndex) return kIndexType;
    if (output.type == TypeVariable::kResult) return kOutputType;
  }
  return "";
}

std::string ParameterPath(absl::string_view parameter) {
  return absl::StrCat("parameters.", parameter);
}

absl::Status InvalidParameter(absl::string_view parameter, absl::string_view text,
                              absl::string_view sentence) {
  const std::string path = ParameterPath(parameter);
  return InvalidField(path, absl::StrCat(path, " (\"", Excerpt(text), "\") ", sentence, "."));
}

absl::StatusOr<AttributeValue> ReadAxes(const AttributeSchema& attribute, const std::string& text,
                                        int64_t rank) {
  std::vector<uint32_t> axes;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t axis = 0;
    if (!absl::SimpleAtoi(part, &axis)) {
      return InvalidParameter(attribute.name, text, "is not a list of integers such as 0,2");
    }
    if (axis < -rank || axis >= rank) {
      return InvalidParameter(attribute.name, text,
                              absl::StrCat("has axis ", axis, ", but the first input has ", rank,
                                           rank == 1 ? " dimension" : " dimensions", ": axes are ",
                                           -rank, " to ", rank - 1));
    }
    axes.push_back(static_cast<uint32_t>(axis < 0 ? axis + rank : axis));
  }
  if (attribute.kind == AttributeKind::kAxes) return AttributeValue(std::move(axes));
  if (axes.size() == 1) return AttributeValue(axes[0]);
  return InvalidParameter(attribute.name, text, "is not one axis");
}

absl::StatusOr<AttributeValue> AttributeFrom(const AttributeSchema& attribute,
                                             const Parameters& parameters, size_t rank) {
  const auto given = parameters.find(attribute.name);
  if (given == parameters.end()) {
    absl::StatusOr<AttributeValue> value = DefaultOf(attribute);
    if (value.ok()) return value;
    const std::string path = ParameterPath(attribute.name);
    return InvalidField(path, absl::StrCat(path, " ", value.status().message(), "."));
  }
  if (IsAxes(attribute.kind)) {
    return ReadAxes(attribute, given->second, static_cast<int64_t>(rank));
  }
  absl::StatusOr<AttributeValue> value = ParseAttribute(attribute, given->second);
  if (value.ok()) return value;
  return InvalidParameter(attribute.name, given->second, value.status().message());
}

absl::StatusOr<FeatureLevel> LevelFrom(const Parameters& parameters) {
  const auto given = parameters.find(kFeatureLevel);
  if (given == parameters.end()) return kNewestFeatureLevel;
  absl::StatusOr<FeatureLevel> level = FeatureLevelFrom(given->second);
  if (level.ok()) return level;
  return InvalidParameter(kFeatureLevel, given->second, "is not a feature level such as 5.0");
}

// Gives the outputs of indices the type that the parameter names.
absl::StatusOr<OperatorDesc> WithIndexType(OperatorDesc desc, const std::string& text,
                                           FeatureLevel level) {
  ASSIGN_OR_RETURN(const DataType type, DataTypeFrom(text, ParameterPath(kIndexType)));
  std::vector<InferredOutput> inferred;
  RETURN_IF_ERROR(desc.schema->infer(desc, inferred));
  bool has_indices = false;
  for (size_t i = 0; i < inferred.size(); ++i) {
    if (!inferred[i].type_is_free) continue;
    desc.outputs[i]->data_type = type;
    has_indices = true;
  }
  if (has_indices) return Validate(std::move(desc), level);
  return InvalidParameter(kIndexType, text,
                          absl::StrCat("is given, but ", FullName(desc), " has no indices"));
}

// "axes[1]" becomes "parameters.axes".
absl::Status NamingParameters(const OperatorSchema& schema, absl::Status status) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field.has_value()) return status;
  const std::string name = field->substr(0, field->find_first_of(".["));
  if (!ParameterOf(schema, name).has_value()) return status;
  return WithField(std::move(status), ParameterPath(name));
}

}  // namespace

std::optional<std::string> ParameterOf(const OperatorSchema& schema, absl::string_view name) {
  for (const AttributeSchema& attribute : schema.attributes) {
    if (name == attribute.name || name == ShortName(attribute) ||
        (IsAxes(attribute.kind) && (name == "axis" || name == "axes"))) {
      return std::string(attribute.name);
    }
  }
  if (name == kFeatureLevel || (!name.empty() && name == OutputTypeName(schema)))
    return std::string(name);
  return std::nullopt;
}

std::string ParameterNames(const OperatorSchema& schema, const Parameters& given) {
  std::vector<absl::string_view> names;
  for (const AttributeSchema& attribute : schema.attributes) {
    if (given.find(attribute.name) == given.end()) names.push_back(ShortName(attribute));
  }
  if (!OutputTypeName(schema).empty()) names.push_back(OutputTypeName(schema));
  names.push_back(kFeatureLevel);
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<OperatorDesc> DescribeOperator(const OperatorSchema& schema,
                                              std::vector<TensorDesc> inputs,
                                              const Parameters& parameters) {
  OperatorDesc desc = {.schema = &schema, .inputs = std::move(inputs)};
  desc.outputs.resize(schema.outputs.size());
  const size_t rank = desc.inputs[0].sizes.size();
  for (const AttributeSchema& attribute : schema.attributes) {
    ASSIGN_OR_RETURN(desc.attributes.emplace_back(), AttributeFrom(attribute, parameters, rank));
  }
  ASSIGN_OR_RETURN(const FeatureLevel level, LevelFrom(parameters));
  const auto output_type = parameters.find(kOutputType);
  if (output_type != parameters.end()) {
    ASSIGN_OR_RETURN(const DataType type,
                     DataTypeFrom(output_type->second, ParameterPath(kOutputType)));
    desc.outputs[0] = TensorDesc{.data_type = type, .sizes = desc.inputs[0].sizes};
  }
  absl::StatusOr<OperatorDesc> valid = Validate(std::move(desc), level);
  const auto index_type = parameters.find(kIndexType);
  if (valid.ok() && index_type != parameters.end()) {
    valid = WithIndexType(*std::move(valid), index_type->second, level);
  }
  if (valid.ok()) return valid;
  return NamingParameters(schema, valid.status());
}

}  // namespace opmill
