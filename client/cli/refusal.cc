#include "client/cli/refusal.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/error.h"
#include "google/rpc/error_details.pb.h"

namespace opmill {
namespace {

struct FieldFlag {
  absl::string_view field;
  absl::string_view flag;  // empty: the input
};
// The fields that this program sets, without the message around them.
constexpr FieldFlag kFlags[] = {
    {"axes", "--axes"},
    {"axis", "--axes"},
    {"axis_direction", "--direction"},
    {"feature_level", "--feature_level"},
    {"function", "--function"},
    {"input", ""},
    {"inputs", ""},
    {"k", "--k"},
    {"output", "--index_type"},
    {"output_indices", "--index_type"},
    {"timeout", "--deadline"},
};

// "operator.reduce.axes[0]" -> "axes", "begin.timeout" -> "timeout", "inputs[0]" -> "inputs"
absl::string_view LeafOf(absl::string_view field) {
  const std::vector<absl::string_view> parts = absl::StrSplit(field, '.');
  size_t leaf = 0;
  if (parts[leaf] == "begin" && leaf + 1 < parts.size()) ++leaf;
  if (parts[leaf] == "operator" && leaf + 2 < parts.size()) leaf += 2;
  return parts[leaf].substr(0, parts[leaf].find('['));
}

std::string Translate(const std::string& field, const std::string& input_name) {
  const absl::string_view leaf = LeafOf(field);
  for (const FieldFlag& known : kFlags) {
    if (leaf == known.field) return known.flag.empty() ? input_name : std::string(known.flag);
  }
  return field;
}

// Field names inside of a sentence.
std::string Reword(absl::string_view sentence) {
  return absl::StrReplaceAll(sentence, {{"arg_max", "argmax"},
                                        {"arg_min", "argmin"},
                                        {"axis_direction", "--direction"},
                                        {"begin.timeout", "--deadline"},
                                        {"input.data_type", "the input's type"},
                                        {"input.sizes", "the input's shape"},
                                        {"input.strides", "the input's strides"},
                                        {"inputs[0]", "the input"},
                                        {"output.data_type", "--index_type"},
                                        {"output_indices.data_type", "--index_type"}});
}

}  // namespace

absl::Status InFlags(const absl::Status& status, const std::string& input_name) {
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (violations.empty()) return status;
  google::rpc::BadRequest detail;
  for (const FieldViolation& violation : violations) {
    google::rpc::BadRequest::FieldViolation& translated = *detail.add_field_violations();
    translated.set_field(Translate(violation.field, input_name));
    translated.set_description(Reword(violation.description));
  }
  absl::Status translated(status.code(), Reword(status.message()));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    translated.SetPayload(type_url, payload);
  });
  translated.SetPayload(absl::StrCat("type.googleapis.com/", detail.GetDescriptor()->full_name()),
                        absl::Cord(detail.SerializeAsString()));
  return translated;
}

}  // namespace opmill
