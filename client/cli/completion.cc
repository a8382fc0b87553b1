// opmill completion: prints completion scripts for shells.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/completion_scripts.h"
#include "client/cli/connection_flags.h"
#include "client/cli/verbs.h"

namespace opmill {
namespace {

struct Shell {
  const char* name;
  std::string (*script)(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
};
constexpr Shell kShells[] = {
    {"bash", &BashCompletion}, {"zsh", &ZshCompletion}, {"fish", &FishCompletion}};

// `help` is handled by main and not in the table of verbs.
std::vector<Verb> VerbsAndHelp() {
  std::vector<Verb> verbs;
  Verb help = {.name = "help", .summary = "prints this page, or the page of a verb"};
  for (const Verb* verb : Verbs()) {
    verbs.push_back(*verb);
    help.argument_choices.push_back(verb->name);
  }
  verbs.push_back(std::move(help));
  return verbs;
}

int Completion(const CommandLine& line) {
  const std::string name = line.argument().value_or("");
  for (const Shell& shell : kShells) {
    if (name != shell.name) continue;
    Print(shell.script(VerbsAndHelp(), WithCommonFlags({})));
    return kDone;
  }
  return BadCommandLine(
      line, absl::InvalidArgumentError(
                absl::StrCat(name.empty() ? "A shell is required"
                                          : absl::StrCat("There is no script for \"", name, "\""),
                             "; the choices are bash, zsh and fish.")));
}

}  // namespace

const Verb& CompletionVerb() {
  static const Verb* const verb = new Verb{
      .name = "completion",
      .arguments = "SHELL",
      .argument_choices = {"bash", "zsh", "fish"},
      .summary = "prints a shell script that completes verbs, flags and values",
      .details =
          "SHELL is bash (4 or later), zsh or fish. Add one line to the shell's start-up file:\n\n"
          "  source <(opmill completion bash)\n"
          "  source <(opmill completion zsh)        after compinit\n"
          "  opmill completion fish | source\n",
      .flags = {},
      .run = &Completion};
  return *verb;
}

}  // namespace opmill
