#include "client/cli/refusal.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/operator_flags.h"
#include "client/error.h"
#include "google/rpc/error_details.pb.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// The path of a field in the request.
struct FieldPath {
  const OperatorSchema* schema = nullptr;  // if it is a field of the operator's own message
  absl::string_view leaf;
  absl::string_view key;  // in brackets
  size_t index = 0;       // the same as a number
};

// "operator.reduce.axes[0]" -> axes of reduce, "begin.timeout" -> timeout, "inputs[1]" -> inputs,
// 1, "operator.named.attributes[min]" -> attributes, min
FieldPath FieldPathOf(absl::string_view field) {
  const std::vector<absl::string_view> parts = absl::StrSplit(field, '.');
  FieldPath path;
  size_t leaf = 0;
  if (parts[leaf] == "begin" && leaf + 1 < parts.size()) ++leaf;
  if (parts[leaf] == "model" && leaf + 1 < parts.size()) ++leaf;
  if (parts[leaf] == "operator" && leaf + 2 < parts.size()) {
    for (const OperatorSchema* const schema : Operators()) {
      if (schema->wire_name == parts[leaf + 1]) path.schema = schema;
    }
    leaf += 2;
  }
  const std::pair<absl::string_view, absl::string_view> name_and_index =
      absl::StrSplit(parts[leaf], absl::MaxSplits('[', 1));
  path.leaf = name_and_index.first;
  path.key = absl::StripSuffix(name_and_index.second, "]");
  if (!absl::SimpleAtoi(path.key, &path.index)) path.index = 0;
  return path;
}

template <typename Schemas>
std::optional<size_t> IndexOf(absl::string_view name, const Schemas& schemas) {
  const auto found =
      absl::c_find_if(schemas, [&](const auto& schema) { return schema.name == name; });
  if (found == schemas.end()) return std::nullopt;
  return static_cast<size_t>(found - schemas.begin());
}

std::string NameOf(size_t input, absl::Span<const std::string> input_names) {
  return input < input_names.size() ? input_names[input] : "";
}

// The flag or the name of the input that determines the field.
std::string Translate(const std::string& field, absl::Span<const std::string> input_names) {
  const FieldPath path = FieldPathOf(field);
  if (path.leaf == "feature_level") return "--feature_level";
  if (path.leaf == "timeout") return "--deadline";
  if (path.leaf == "inputs") return NameOf(path.index, input_names);
  if (path.leaf == "attributes" && !path.key.empty()) {
    return absl::StrCat("--", FlagOf({.name = path.key}));
  }
  if (path.leaf == "outputs") return "--output_type";
  if (path.schema == nullptr) return field;
  if (const auto input = IndexOf(path.leaf, path.schema->inputs)) {
    return NameOf(*input, input_names);
  }
  if (const auto attribute = IndexOf(path.leaf, path.schema->attributes)) {
    return absl::StrCat("--", FlagOf(path.schema->attributes[*attribute]));
  }
  const auto output = IndexOf(path.leaf, path.schema->outputs);
  // The only flag for outputs is their type.
  if (!output || path.schema->outputs[*output].type == TypeVariable::kValue) return field;
  return absl::StrCat("--", OutputTypeFlag(*path.schema));
}

// Replaces field names within a message about an operator; null: one without its own message.
std::string Reword(absl::string_view sentence, const OperatorSchema* schema) {
  std::string reworded(sentence);
  for (size_t i = 0; schema != nullptr && i < schema->inputs.size(); ++i) {
    const absl::string_view name = schema->inputs[i].name;
    if (name == "input") continue;
    const std::pair<absl::string_view, absl::string_view> words[] = {
        {"data_type", "type"}, {"sizes", "shape"}, {"strides", "strides"}};
    for (const auto& [field, word] : words) {
      absl::StrReplaceAll(
          {{absl::StrCat(name, ".", field), absl::StrCat("input ", name, "'s ", word)}}, &reworded);
    }
  }
  return absl::StrReplaceAll(
      reworded, {{"arg_max", "argmax"},
                 {"arg_min", "argmin"},
                 {"axis_direction", "--direction"},
                 {"begin.timeout", "--deadline"},
                 {"input.data_type", "the input's type"},
                 {"input.sizes", "the input's shape"},
                 {"input.strides", "the input's strides"},
                 {"inputs[0]", "the input"},
                 {"inputs[1]", "the input"},
                 {"output.data_type", schema == nullptr ? "--output_type" : "--index_type"},
                 {"output_indices.data_type", "--index_type"}});
}

}  // namespace

absl::Status InFlags(const absl::Status& status, absl::Span<const std::string> input_names) {
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (violations.empty()) return status;
  const OperatorSchema* const schema = FieldPathOf(violations.front().field).schema;
  google::rpc::BadRequest detail;
  for (const FieldViolation& violation : violations) {
    google::rpc::BadRequest::FieldViolation& translated = *detail.add_field_violations();
    translated.set_field(Translate(violation.field, input_names));
    translated.set_description(Reword(violation.description, schema));
  }
  absl::Status translated(status.code(), Reword(status.message(), schema));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    translated.SetPayload(type_url, payload);
  });
  translated.SetPayload(absl::StrCat("type.googleapis.com/", detail.GetDescriptor()->full_name()),
                        absl::Cord(detail.SerializeAsString()));
  return translated;
}

}  // namespace opmill
