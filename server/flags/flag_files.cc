#include "server/flags/flag_files.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/regular_file.h"

namespace opmill {
namespace {

constexpr int kMostLevels = 10;                     // of nested files
constexpr size_t kMostFileBytes = size_t{1} << 20;  // of a file
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string Shown(absl::string_view text) { return Excerpt(text, 200); }

class Expander {
 public:
  absl::Status Append(const std::vector<std::string>& arguments, int level) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      absl::string_view files = arguments[i];
      const bool one_dash = absl::ConsumePrefix(&files, "-");
      if (one_dash) absl::ConsumePrefix(&files, "-");
      if (!one_dash || !absl::ConsumePrefix(&files, "flagfile")) {
        expanded_.push_back(arguments[i]);
      } else if (absl::ConsumePrefix(&files, "=")) {
        RETURN_IF_ERROR(AppendFiles(files, level));
      } else if (!files.empty()) {
        expanded_.push_back(arguments[i]);  // another flag
      } else if (i + 1 < arguments.size()) {
        RETURN_IF_ERROR(AppendFiles(arguments[++i], level));
      } else {
        return absl::InvalidArgumentError("--flagfile needs a value: --flagfile=FILE.");
      }
    }
    return absl::OkStatus();
  }

  std::vector<std::string> Take() && { return std::move(expanded_); }

 private:
  absl::Status AppendFiles(absl::string_view files, int level) {
    if (level == kMostLevels) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--flagfile=", Shown(files), " is nested more than ", kMostLevels, " deep."));
    }
    for (const absl::string_view file : absl::StrSplit(files, ',', absl::SkipEmpty())) {
      std::vector<std::string> flags;
      ASSIGN_OR_RETURN(const std::string content,
                       ReadRegularFile(std::string(file), kMostFileBytes,
                                       absl::StrCat("--flagfile=", Shown(file))));
      size_t number = 0;
      for (absl::string_view text : absl::StrSplit(content, '\n')) {
        if (++number == 1) absl::ConsumePrefix(&text, kByteOrderMark);
        text = absl::StripAsciiWhitespace(text);
        if (text.empty() || absl::StartsWith(text, "#")) continue;
        if (!absl::StartsWith(text, "-")) {
          return absl::InvalidArgumentError(
              absl::StrCat("Line ", number, " of --flagfile=", Shown(file), " is \"", Shown(text),
                           "\"; a line is a flag (--name=value), a comment (#) or empty."));
        }
        flags.emplace_back(text);
      }
      RETURN_IF_ERROR(Append(flags, level + 1));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> expanded_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> WithFlagFiles(const std::vector<std::string>& arguments) {
  Expander expander;
  RETURN_IF_ERROR(expander.Append(arguments, 0));
  return std::move(expander).Take();
}

}  // namespace opmill
