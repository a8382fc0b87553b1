#include "client/cli/refusal.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/error.h"

namespace opmill {
namespace {

struct FieldFlag {
  absl::string_view field;
  absl::string_view flag;
};
// The fields that this program sets, without the message around them.
constexpr FieldFlag kFlags[] = {
    {"axes", "--axes: "},
    {"axis", "--axes: "},
    {"axis_direction", "--direction: "},
    {"feature_level", "--feature_level: "},
    {"function", "--function: "},
    {"k", "--k: "},
    {"output", "--index_type: "},
    {"output_indices", "--index_type: "},
    {"timeout", "--deadline: "},
};

// "operator.reduce.axes[0]" -> "axes", "begin.timeout" -> "timeout", "inputs[0]" -> "inputs"
absl::string_view LeafOf(absl::string_view field) {
  std::vector<absl::string_view> parts = absl::StrSplit(field, '.');
  size_t leaf = 0;
  if (parts[leaf] == "begin" && leaf + 1 < parts.size()) ++leaf;
  if (parts[leaf] == "operator" && leaf + 2 < parts.size()) leaf += 2;
  return parts[leaf].substr(0, parts[leaf].find('['));
}

absl::string_view FlagOf(absl::string_view field) {
  const absl::string_view leaf = LeafOf(field);
  for (const FieldFlag& known : kFlags) {
    if (leaf == known.field) return known.flag;
  }
  return "";
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

std::string Explain(const absl::Status& status, const std::string& input_name) {
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (violations.empty()) return Describe(status);
  std::string text;
  for (const FieldViolation& violation : violations) {
    const absl::string_view sentence =
        violation.description.empty() ? status.message() : violation.description;
    const absl::string_view flag = FlagOf(violation.field);
    absl::StrAppend(&text, text.empty() ? "" : "\n");
    if (flag.empty() && !input_name.empty()) absl::StrAppend(&text, input_name, ": ");
    absl::StrAppend(&text, flag, Reword(sentence));
  }
  if (const auto delay = RetryDelayOf(status)) {
    absl::StrAppend(&text, " Try again in ", absl::FormatDuration(*delay), ".");
  }
  return text;
}

}  // namespace opmill
