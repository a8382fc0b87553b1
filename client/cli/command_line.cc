#include "client/cli/command_line.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "kernels/base/nearest.h"

namespace opmill {
namespace {

std::string FlagTable(absl::Span<const Flag> flags) {
  std::string page;
  for (const Flag& flag : flags) {
    const std::string left =
        absl::StrCat("--", flag.name, flag.value.empty() ? "" : " ", flag.value);
    absl::StrAppendFormat(&page, "  %-28s %s\n", left, flag.help);
  }
  return page;
}

}  // namespace

absl::StatusOr<CommandLine> CommandLine::Parse(const Verb& verb,
                                               absl::Span<const std::string> words) {
  CommandLine line(verb);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!absl::StartsWith(word, "-") || word == "-") {
      if (verb.arguments.empty() ||
          (!line.arguments_.empty() && !absl::StrContains(verb.arguments, "..."))) {
        return absl::InvalidArgumentError(
            absl::StrCat("opmill ", verb.name, " takes no argument \"", word, "\"."));
      }
      line.arguments_.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const size_t dashes = absl::StartsWith(word, "--") ? 2 : 1;
    std::string name = word.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    const auto find = [&](absl::string_view wanted) {
      return std::find_if(verb.flags.begin(), verb.flags.end(),
                          [&](const Flag& known) { return known.name == wanted; });
    };
    auto flag = find(name);
    bool is_negated = false;
    if (flag == verb.flags.end() && equals == std::string::npos && absl::StartsWith(name, "no")) {
      flag = find(absl::StripPrefix(name, "no"));
      is_negated = flag != verb.flags.end() && flag->value.empty();
      if (is_negated) name = flag->name;
      if (!is_negated) flag = verb.flags.end();
    }
    if (flag == verb.flags.end() || dashes == 1) {
      std::vector<std::string> names;
      for (const Flag& known : verb.flags) names.push_back(known.name);
      return absl::InvalidArgumentError(absl::StrCat("opmill ", verb.name, " has no flag ",
                                                     std::string(dashes, '-'), name, ".",
                                                     DidYouMean(name, names, "--")));
    }
    std::string value;
    if (flag->value.empty()) {
      value = is_negated ? "false" : equals == std::string::npos ? "true" : word.substr(equals + 1);
      if (value == "false") {
        line.switched_off_.insert(name);
      } else if (value != "true") {
        return absl::InvalidArgumentError(
            absl::StrCat("--", name, ": \"", value, "\" is neither true nor false."));
      }
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " needs a value: --", name, " ", flag->value, "."));
    }
    if (!flag->repeats && line.flags_.count(name) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " is given twice."));
    }
    line.flags_.emplace(name, value);
  }
  return line;
}

std::optional<std::string> CommandLine::argument() const {
  if (arguments_.empty()) return std::nullopt;
  return arguments_[0];
}

bool CommandLine::Has(const std::string& flag) const {
  return flags_.count(flag) > 0 && switched_off_.count(flag) == 0;
}

std::optional<std::string> CommandLine::Get(const std::string& flag) const {
  const auto found = flags_.lower_bound(flag);
  if (found == flags_.end() || found->first != flag) return std::nullopt;
  return found->second;
}

std::vector<std::string> CommandLine::GetAll(const std::string& flag) const {
  std::vector<std::string> values;
  const auto [begin, end] = flags_.equal_range(flag);
  for (auto value = begin; value != end; ++value) values.push_back(value->second);
  return values;
}

std::string HelpPage(absl::Span<const Verb* const> verbs) {
  std::string page =
      "opmill VERB [--flag value ...]   runs DirectML operators on an OpMill server\n\n";
  for (const Verb* verb : verbs) {
    absl::StrAppendFormat(
        &page, "  %-22s %s\n",
        absl::StrCat(verb->name, verb->arguments.empty() ? "" : " ", verb->arguments),
        verb->summary);
  }
  absl::StrAppendFormat(&page, "  %-22s %s\n", "help [VERB]",
                        "prints this page, or the page of a verb");
  absl::StrAppend(
      &page,
      "\nExit codes: 0 success; 1 refused or failed; 2 invalid command line; 3 no server "
      "at that address.\nThe server address is --server, else OPMILL_SERVER, else "
      "127.0.0.1:50051.\n--server, --tls..., --token_file, --insecure, --deadline and "
      "--json may also precede the verb.\nWith --json, errors and warnings are "
      "JSON too, on stderr.\n");
  return page;
}

std::string HelpPage(const Verb& verb) {
  return absl::StrCat("opmill ", verb.name, verb.arguments.empty() ? "" : " ", verb.arguments,
                      " [--flag value ...]   ", verb.summary, "\n\n", verb.details, "\n",
                      FlagTable(verb.flags));
}

}  // namespace opmill
