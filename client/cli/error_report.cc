#include "client/cli/error_report.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/refusal.h"
#include "client/error.h"
#include "kernels/base/json_text.h"

namespace opmill {
namespace {

bool errors_are_json = false;

// The invalid flag or the input; "" if the message begins with neither.
std::string FieldOf(const absl::Status& status) {
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (!violations.empty()) return violations[0].field;
  const absl::string_view sentence = status.message();
  if (!absl::StartsWith(sentence, "--")) return "";
  return std::string(
      sentence.substr(0, sentence.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 2)));
}

std::string Json(const absl::Status& status, absl::string_view hint) {
  const std::string code = absl::StatusCodeToString(status.code());
  std::string json =
      absl::StrCat("{\"error\":{\"code\":", JsonString(code),
                   ",\"message\":", JsonString(status.message().empty() ? code : status.message()));
  const std::string field = FieldOf(status);
  if (!field.empty()) absl::StrAppend(&json, ",\"field\":", JsonString(field));
  if (!hint.empty()) absl::StrAppend(&json, ",\"hint\":", JsonString(hint));
  if (const std::optional<absl::Duration> delay = RetryDelayOf(status)) {
    absl::StrAppend(&json, ",\"retry_after_s\":", absl::ToDoubleSeconds(*delay));
  }
  return json + "}}";
}

}  // namespace

void Print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void WriteErrorsAsJson() { errors_are_json = true; }

int ReportError(const absl::Status& refusal, absl::string_view hint, ExitCode exit_code) {
  const absl::Status status = InFlags(refusal);
  const std::string text =
      errors_are_json ? Json(status, hint)
                      : absl::StrCat("opmill: ", Describe(status), hint.empty() ? "" : "\n", hint);
  std::fprintf(stderr, "%s\n", text.c_str());
  return exit_code;
}

void Warn(absl::string_view sentence) {
  const std::string text =
      errors_are_json ? absl::StrCat("{\"warning\":{\"message\":", JsonString(sentence), "}}")
                      : absl::StrCat("opmill: ", sentence);
  std::fprintf(stderr, "%s\n", text.c_str());
}

int Fail(const absl::Status& status) {
  return ReportError(status,
                     absl::IsUnauthenticated(status)
                         ? "Pass a file with a valid token with --token_file, or set "
                           "OPMILL_TOKEN to the token."
                         : "",
                     kFailed);
}

int BadCommandLine(const Verb& verb, const absl::Status& status) {
  return ReportError(status, absl::StrCat("See `opmill help ", verb.name, "`."), kBadCommandLine);
}

int BadCommandLine(const CommandLine& line, const absl::Status& status) {
  return BadCommandLine(line.verb(), status);
}

}  // namespace opmill
