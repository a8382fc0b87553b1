#include "server/models/config_text.h"

#include <cstddef>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "kernels/base/errors.h"
#include "kernels/base/nearest.h"
#include "server/models/model_config.h"

namespace opmill {
namespace {

// Fields of Triton's that OpMill does not have, and that would change what a model does.
constexpr absl::string_view kUnsupported[] = {
    // ModelConfig
    "batch_input", "batch_output", "ensemble_scheduling", "model_operations",
    "model_repository_agents", "runtime", "sequence_batching",
    // ModelInput, ModelOutput
    "allow_ragged_batch", "is_non_linear_format_io", "is_shape_tensor", "optional", "reshape",
    // ModelDynamicBatching
    "default_priority_level", "default_queue_policy", "priority_levels", "priority_queue_policy"};
// Those that would not: where a model runs, how fast, and how it is reported.
constexpr absl::string_view kWithoutEffect[] = {
    // ModelConfig
    "cc_model_filenames", "metric_tags", "model_metrics", "optimization", "response_cache",
    // ModelInput, ModelOutput
    "format", "label_filename",
    // ModelInstanceGroup
    "host_policy", "passive", "profile", "rate_limiter", "secondary_devices"};

std::string NotSupported(absl::string_view field) {
  return absl::StrCat(field, " is not supported by OpMill; remove it.");
}

// A message of protobuf's, which may quote the configuration.
std::string Printable(absl::string_view message) {
  constexpr size_t kMostBytes = 500;
  std::string text(message.substr(0, kMostBytes));
  absl::c_replace_if(
      text, [](unsigned char c) { return !absl::ascii_isprint(c); }, '?');
  return text;
}

// Keeps the first error, and the names of fields that have no effect.
class Findings final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat("Line ", line + 1, ", column ", column + 1, ": ",
                         Sentence(Printable(message)));
  }
  // Unknown fields are warnings, so that the parser skips what is in them.
  void AddWarning(int line, google::protobuf::io::ColumnNumber column,
                  const std::string& message) override {
    const std::vector<absl::string_view> parts = absl::StrSplit(message, '"');
    if (parts.size() == 5 && absl::c_linear_search(kWithoutEffect, parts[3])) {
      without_effect_.emplace(parts[3]);
    } else {
      AddError(line, column, message);
    }
  }
  const std::string& text() const { return text_; }
  const std::set<std::string>& without_effect() const { return without_effect_; }

 private:
  // protobuf's message, or a better one for a field that is not in our ModelConfig.
  static std::string Sentence(absl::string_view message) {
    const std::vector<absl::string_view> parts = absl::StrSplit(message, '"');
    if (parts.size() != 5 || parts[2] != " has no field named ") return std::string(message);
    const std::string type(parts[1]);
    const absl::string_view field = parts[3];
    if (absl::c_linear_search(kUnsupported, field)) {
      return NotSupported(field);
    }
    std::vector<std::string> names;
    const auto* const descriptor =
        inference::ModelConfig::descriptor()->file()->pool()->FindMessageTypeByName(type);
    for (int i = 0; descriptor != nullptr && i < descriptor->field_count(); ++i) {
      names.push_back(descriptor->field(i)->name());
    }
    return absl::StrCat("There is no field \"", field, "\".", DidYouMean(field, names));
  }

  std::string text_;
  std::set<std::string> without_effect_;
};

// As Triton writes what is not set.
bool IsUnset(const google::protobuf::Value& value) {
  return value.string_value().empty() && value.number_value() == 0 && !value.bool_value() &&
         value.list_value().values().empty() && value.struct_value().fields().empty();
}

// Removes the fields of Triton's that are not in our ModelConfig: those without effect, whose names
// it adds, and those that are not set.
absl::Status RemoveOtherFields(google::protobuf::Struct& object,
                               std::set<std::string>& without_effect) {
  std::vector<std::string> removed;
  for (auto& [name, value] : *object.mutable_fields()) {
    const bool has_no_effect = absl::c_linear_search(kWithoutEffect, name);
    if (has_no_effect || absl::c_linear_search(kUnsupported, name)) {
      removed.push_back(name);
      if (IsUnset(value)) continue;
      if (!has_no_effect) return InvalidField(name, NotSupported(name));
      without_effect.insert(name);
      continue;
    }
    if (name == "parameters" || name == "inputs") continue;  // their keys are no fields
    if (value.has_struct_value()) {
      RETURN_IF_ERROR(RemoveOtherFields(*value.mutable_struct_value(), without_effect));
    }
    if (!value.has_list_value()) continue;
    for (auto& element : *value.mutable_list_value()->mutable_values()) {
      if (!element.has_struct_value()) continue;
      RETURN_IF_ERROR(RemoveOtherFields(*element.mutable_struct_value(), without_effect));
    }
  }
  for (const std::string& name : removed) object.mutable_fields()->erase(name);
  return absl::OkStatus();
}

absl::StatusOr<ParsedConfig> Checked(const std::string& name, inference::ModelConfig config,
                                     const std::set<std::string>& without_effect) {
  RETURN_IF_ERROR(CheckWord("name", config.name(), {name}));
  config.set_name(name);
  if (config.model_transaction_policy().decoupled()) {
    return InvalidField("model_transaction_policy.decoupled",
                        "model_transaction_policy.decoupled is true; each request has one answer.");
  }
  ParsedConfig parsed = {std::move(config), {without_effect.begin(), without_effect.end()}};
  if (!parsed.config.instance_group().empty()) parsed.without_effect.push_back("instance_group");
  return parsed;
}

absl::Status NoJson(const google::protobuf::util::Status& status) {
  return InvalidField("parameters.config",
                      absl::StrCat("The configuration is not a ModelConfig in JSON: ",
                                   Printable({status.message().data(), status.message().size()})));
}

}  // namespace

absl::StatusOr<ParsedConfig> ParseConfig(const std::string& name, const std::string& text) {
  inference::ModelConfig config;
  Findings findings;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&findings);
  parser.AllowUnknownField(true);
  const bool is_parsed = parser.ParseFromString(text, &config);
  if (!is_parsed || !findings.text().empty()) return absl::InvalidArgumentError(findings.text());
  return Checked(name, std::move(config), findings.without_effect());
}

absl::StatusOr<ParsedConfig> ParseJsonConfig(const std::string& name, const std::string& json) {
  using google::protobuf::util::JsonStringToMessage;
  google::protobuf::Struct object;
  if (const auto read = JsonStringToMessage(json, &object); !read.ok()) return NoJson(read);
  std::set<std::string> without_effect;
  RETURN_IF_ERROR(RemoveOtherFields(object, without_effect));
  std::string known;
  inference::ModelConfig config;
  auto converted = google::protobuf::util::MessageToJsonString(object, &known);
  if (converted.ok()) converted = JsonStringToMessage(known, &config);
  if (!converted.ok()) return NoJson(converted);
  return Checked(name, std::move(config), without_effect);
}

}  // namespace opmill
