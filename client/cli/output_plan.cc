#include "client/cli/output_plan.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/file_writer.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

constexpr char kStemMark[] = "{}";

// Accepts the separators of both systems, so that a command line has the same meaning on both.
bool EndsWithSeparator(absl::string_view path) {
  return absl::EndsWith(path, "/") || absl::EndsWith(path, "\\");
}

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return EndsWithSeparator(path) || std::filesystem::is_directory(PathOf(path), ignored);
}

// The name of an array in an archive may be anything, even a path to another folder.
bool CanBeFileName(absl::string_view stem) {
  return !stem.empty() && !absl::StartsWith(stem, ".") &&
         stem.find_first_of(absl::string_view("/\\:\0", 4)) == absl::string_view::npos;
}

absl::Status Refusal(const std::string& flag, absl::string_view sentence) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", sentence));
}

}  // namespace

std::string OutputTarget::Name() const {
  if (kind == Kind::kStandardOutput) return "standard output";
  return kind == Kind::kArchive ? absl::StrCat(path, ":", Excerpt(member)) : path;
}

absl::StatusOr<OutputTarget> OutputPlan::TargetOf(const std::string& flag, const std::string& value,
                                                  const InputArray& input) const {
  using Kind = OutputTarget::Kind;
  const bool has_mark = absl::StrContains(value, kStemMark);
  const bool is_folder = !has_mark && IsFolder(value);
  if (value == kStandardStream && inputs_.size() == 1) return OutputTarget{Kind::kStandardOutput};
  if (value == kStandardStream) {
    return Refusal(
        flag, absl::StrCat("Standard output can hold one result, but there are ", inputs_.size(),
                           "; name a directory (out/) or a .npz archive."));
  }
  if ((has_mark || is_folder) && !CanBeFileName(input.stem)) {
    return Refusal(flag, absl::StrCat("The name of ", input.name,
                                      " cannot be part of a file name; write a .npz archive."));
  }
  std::string path = value;
  if (has_mark) path = absl::StrReplaceAll(value, {{kStemMark, input.stem}});
  if (is_folder) {
    absl::StrAppend(&path, EndsWithSeparator(value) ? "" : "/", input.stem, ".npy");
  }
  if (absl::EndsWith(path, kArchiveSuffix)) {
    return OutputTarget{Kind::kArchive, path, input.stem};
  }
  if (has_mark || is_folder || inputs_.size() == 1) return OutputTarget{Kind::kFile, path};
  return Refusal(flag,
                 absl::StrCat(value, " is one file, but there are ", inputs_.size(),
                              " results; name a directory (out/), a .npz archive, or a file with "
                              "{} for the name of each (out-{}.npy)."));
}

absl::StatusOr<std::vector<OutputTarget>> OutputPlan::Add(const std::string& flag,
                                                          const std::optional<std::string>& value) {
  std::vector<OutputTarget> targets(inputs_.size());
  if (!value) return targets;
  if (value->empty()) return Refusal(flag, "It is empty; it must name a file.");
  if (EndsWithSeparator(*value)) folders_.insert(*value);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputArray& input = inputs_[i].front();
    if (!input.status.ok()) continue;
    ASSIGN_OR_RETURN(const OutputTarget target, TargetOf(flag, *value, input));
    const std::string name = target.Name();
    const auto [use, is_new] = uses_.insert({name, {flag, &input, target}});
    if (!is_new && use->second.input == &input) {
      return Refusal(flag, absl::StrCat("It is the same as --", use->second.flag, ": ", name, "."));
    }
    if (!is_new) {
      return Refusal(flag, absl::StrCat("The results of ", use->second.input->name, " and ",
                                        input.name, " would both be ", name, "."));
    }
    targets[i] = target;
  }
  return targets;
}

absl::Status OutputPlan::Prepare() const {
  for (const std::string& folder : folders_) {
    std::error_code error;
    std::filesystem::create_directories(PathOf(folder), error);
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder, " cannot be created: ", error.message(), "."));
    }
  }
  for (const auto& [name, use] : uses_) {
    if (use.target.path.empty()) continue;
    absl::Status writable = FileWriter::CheckPath(use.target.path);
    if (!writable.ok()) return writable;
  }
  return absl::OkStatus();
}

}  // namespace opmill
