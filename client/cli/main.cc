// opmill: runs DirectML operators on an OpMill server, from the command line.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/connection_flags.h"
#include "client/cli/verbs.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/nearest.h"
#include "kernels/base/process_io.h"
#include "kernels/base/process_memory.h"

namespace opmill {
namespace {

const Verb* FindVerb(const std::string& name) {
  for (const Verb* verb : Verbs()) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

int BadWords(absl::string_view sentence) {
  return ReportError(absl::InvalidArgumentError(sentence), "`opmill help` lists the verbs.",
                     kBadCommandLine);
}

int UnknownVerb(const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const Verb* verb : Verbs()) names.push_back(verb->name);
  return BadWords(absl::StrCat("There is no verb \"", name, "\".", DidYouMean(name, names)));
}

int Help(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "help") {
    Print(HelpPage(Verbs()));
    return kDone;
  }
  const Verb* const verb = FindVerb(words[0]);
  if (verb == nullptr) return UnknownVerb(words[0]);
  Print(HelpPage(*verb));
  return kDone;
}

bool IsHelp(absl::string_view word) { return word == "--help" || word == "-h"; }
bool IsVersion(absl::string_view word) { return word == "--version" || word == "-v"; }

// The number of words before the verb: common flags and their values.
absl::StatusOr<size_t> CountLeadingFlags(const std::vector<std::string>& words) {
  const std::vector<Flag> common = WithCommonFlags({});
  size_t count = 0;
  while (count < words.size() && absl::StartsWith(words[count], "--") && !IsHelp(words[count]) &&
         !IsVersion(words[count])) {
    const std::pair<std::string, std::string> word =
        absl::StrSplit(absl::StripPrefix(words[count], "--"), absl::MaxSplits('=', 1));
    const auto flag = std::find_if(common.begin(), common.end(),
                                   [&](const Flag& known) { return known.name == word.first; });
    if (flag == common.end()) {
      std::vector<std::string> names;
      for (const Flag& known : common) names.push_back(known.name);
      return absl::InvalidArgumentError(absl::StrCat("--", word.first,
                                                     " is not allowed before the verb.",
                                                     DidYouMean(word.first, names, "--")));
    }
    const bool has_value_behind = !flag->value.empty() && !absl::StrContains(words[count], "=");
    count += has_value_behind ? 2 : 1;
  }
  if (count >= words.size()) {
    return absl::InvalidArgumentError("A verb is required, for example: opmill info.");
  }
  return count;
}

int Main(std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(HelpPage(Verbs()).c_str(), stderr);
    return kBadCommandLine;
  }
  if (std::find(words.begin(), words.end(), "--json") != words.end()) WriteErrorsAsJson();
  const absl::StatusOr<size_t> leading_flags = CountLeadingFlags(words);
  if (!leading_flags.ok()) return BadWords(leading_flags.status().message());
  const auto verb_word = words.begin() + static_cast<std::ptrdiff_t>(*leading_flags);
  std::string name = *verb_word;
  if (name == "help" || IsHelp(name)) return Help({verb_word + 1, words.end()});
  if (IsVersion(name)) name = "version";
  const Verb* const verb = FindVerb(name);
  if (verb == nullptr) return UnknownVerb(name);
  words.erase(verb_word);
  if (std::any_of(words.begin(), words.end(), &IsHelp)) return Help({name});
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(*verb, words);
  if (!line.ok()) return BadCommandLine(*verb, line.status());
  return verb->run(*line);
}

}  // namespace
}  // namespace opmill

// Does not shut down gRPC: that may wait 10 s for the last poller of a connection, and on Windows
// its threads have been seen to block the exit of a process.
int main(int argc, char** argv) {
  opmill::WriteUtf8ToConsole();
  opmill::TuneAllocatorForLargeMessages();
  opmill::SetDefaultEnvironment("GRPC_VERBOSITY",
                                "NONE");  // errors are in its statuses
  grpc_init();
  int exit_code = opmill::Main(opmill::Arguments(argc, argv));
  if (std::fflush(stdout) != 0 && exit_code == opmill::kDone) {
    exit_code =
        opmill::Fail(absl::UnknownError("The result cannot be written to standard output."));
  }
  std::fflush(stderr);
  std::_Exit(exit_code);
}
