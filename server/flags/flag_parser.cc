#include "server/flags/flag_parser.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/nearest.h"
#include "kernels/base/process_io.h"
#include "kernels/base/wrap_words.h"

namespace opmill {
namespace {

constexpr absl::string_view kPrefix = "OPMILL_";
// OPMILL_SERVER and OPMILL_TOKEN are those of the command line `opmill`.
constexpr absl::string_view kVariablesOfTheClient[] = {"SERVER", "TOKEN"};
constexpr size_t kMostShownBytes = 200;

std::string VariableOf(absl::string_view flag) {
  return absl::StrCat(kPrefix, absl::AsciiStrToUpper(flag));
}

// Which values the flag accepts. `error` is abseil's.
std::string Expected(const absl::CommandLineFlag& flag, absl::string_view value,
                     absl::string_view error) {
  if (flag.IsOfType<bool>()) return "It must be true or false.";
  if (flag.IsOfType<uint32_t>()) return "It must be a number from 0 to 4294967295.";
  if (flag.IsOfType<absl::Duration>()) {
    double number = 0;
    return absl::StrCat("A duration is a number with ms, s, m or h: 500ms, 30s, 2m; or inf.",
                        absl::SimpleAtod(value, &number) && number >= 0
                            ? absl::StrCat(" Did you mean ", value, "s?")
                            : "");
  }
  absl::ConsumePrefix(
      &error, absl::StrCat("Illegal value '", value, "' specified for flag '", flag.Name(), "'; "));
  return std::string(error);
}

absl::Status Set(absl::CommandLineFlag& flag, absl::string_view subject, absl::string_view value) {
  std::string error;
  if (flag.ParseFrom(value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(subject, " is \"", Excerpt(value, kMostShownBytes),
                                                 "\". ", Expected(flag, value, error)));
}

struct Word {
  absl::string_view dashes;
  absl::string_view name;
  std::optional<absl::string_view> value;
};

Word Split(absl::string_view argument) {
  const size_t dashes = absl::StartsWith(argument, "--") ? 2 : absl::StartsWith(argument, "-");
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(argument.substr(dashes), absl::MaxSplits('=', 1));
  Word word = {argument.substr(0, dashes), parts.first, std::nullopt};
  if (absl::StrContains(argument, '=')) word.value = parts.second;
  return word;
}

absl::Status NoFlag(const FlagsByName& flags, const Word& word) {
  std::vector<std::string> names = {"help", "version", "flagfile"};
  for (const auto& [name, flag] : flags) names.push_back(name);
  return absl::InvalidArgumentError(absl::StrCat("opmill-server has no flag ", word.dashes,
                                                 Excerpt(word.name, kMostShownBytes), ".",
                                                 DidYouMean(word.name, names, "--")));
}

}  // namespace

absl::Status SetFromEnvironment(const FlagsByName& flags) {
  for (const auto& [name, flag] : flags) {
    const std::string variable = VariableOf(name);
    const std::optional<std::string> value = Environment(variable.c_str());
    if (value) RETURN_IF_ERROR(Set(*flag, variable, *value));
  }
  return absl::OkStatus();
}

std::vector<std::string> UnknownVariables(const FlagsByName& flags) {
  std::vector<std::string> known(std::begin(kVariablesOfTheClient),
                                 std::end(kVariablesOfTheClient));
  for (const auto& [name, flag] : flags) known.push_back(absl::AsciiStrToUpper(name));
  std::vector<std::string> sentences;
  for (const std::string& variable : EnvironmentNames()) {
    absl::string_view name = variable;
    if (!absl::ConsumePrefix(&name, kPrefix) || absl::c_linear_search(known, name)) continue;
    sentences.push_back(absl::StrCat(Excerpt(variable, kMostShownBytes), " sets no flag.",
                                     DidYouMean(name, known, kPrefix)));
  }
  return sentences;
}

PageRequest FindPageRequest(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const Word word = Split(argument);
    if (word.dashes.empty()) continue;
    if (word.name == "help" || word.name == "h") return PageRequest::kHelpPage;
    if (word.name == "version" || word.name == "v") return PageRequest::kVersionPage;
  }
  return PageRequest::kNone;
}

absl::Status SetFromArguments(const FlagsByName& flags, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    Word word = Split(arguments[i]);
    if (word.dashes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", Excerpt(arguments[i], kMostShownBytes),
                       "\" is not a flag; opmill-server takes only flags."));
    }
    auto found = flags.find(word.name);
    if (found == flags.end() && !word.value && absl::StartsWith(word.name, "no")) {
      found = flags.find(absl::StripPrefix(word.name, "no"));
      if (found != flags.end() && !found->second->IsOfType<bool>()) found = flags.end();
      word.value = "false";
    }
    if (found == flags.end()) return NoFlag(flags, word);
    const std::string subject = absl::StrCat("--", found->first);
    if (!word.value && found->second->IsOfType<bool>()) word.value = "true";
    if (!word.value && i + 1 < arguments.size() && !absl::StartsWith(arguments[i + 1], "--")) {
      word.value = arguments[++i];
    }
    if (!word.value) {
      return absl::InvalidArgumentError(
          absl::StrCat(subject, " needs a value: ", subject, "=VALUE."));
    }
    RETURN_IF_ERROR(Set(*found->second, subject, *word.value));
  }
  return absl::OkStatus();
}

std::string FlagTable(const FlagsByName& flags) {
  std::string table;
  for (const auto& [name, flag] : flags) {
    const std::string value = flag->DefaultValue();
    absl::StrAppend(&table, "  --", name, " (default ", value.empty() ? "none" : value, ")\n",
                    WrapWords(flag->Help(), "      "), "\n");
  }
  return table;
}

}  // namespace opmill
