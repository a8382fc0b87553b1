// The command line as a table: verbs, their flags, and what a user typed.
#ifndef OPMILL_CLIENT_CLI_COMMAND_LINE_H_
#define OPMILL_CLIENT_CLI_COMMAND_LINE_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace opmill {

enum ExitCode { kDone = 0, kFailed = 1, kBadCommandLine = 2, kNoServer = 3 };

struct Flag {
  std::string name;
  std::string value;  // what follows it, as help names it; "" for a switch: true or false
  std::string help;
  std::vector<std::string> choices = {};  // every value that it takes, where they are few
  bool repeats = false;                   // may be given several times
};

class CommandLine;

struct Verb {
  std::string name;
  std::string arguments;  // "OPERATOR", "OPERATOR [FILE...]", or "" where it takes none
  std::vector<std::string> argument_choices;
  std::string summary;  // one line
  std::string details;  // paragraphs of help
  std::vector<Flag> flags;
  int (*run)(const CommandLine&);  // an ExitCode
};

// What followed the verb.
class CommandLine {
 public:
  // Takes `--flag value` and `--flag=value`, of switches `--flag`, `--noflag`, `--flag=true` and
  // `--flag=false`. InvalidArgument for a flag that the verb has not, one without its value, one
  // given twice, or arguments that the verb does not take.
  static absl::StatusOr<CommandLine> Parse(const Verb& verb, absl::Span<const std::string> words);

  const Verb& verb() const { return *verb_; }
  // The first of arguments().
  std::optional<std::string> argument() const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  // Given; of a switch, and not as false.
  bool Has(const std::string& flag) const;
  // Of a switch "true" or "false"; of a flag that repeats the first value.
  std::optional<std::string> Get(const std::string& flag) const;
  // Every value, in their order.
  std::vector<std::string> GetAll(const std::string& flag) const;

 private:
  explicit CommandLine(const Verb& verb) : verb_(&verb) {}

  const Verb* verb_;
  std::vector<std::string> arguments_;
  std::set<std::string> switched_off_;
  std::multimap<std::string, std::string> flags_;  // equal keys in the order of the command line
};

// The candidate that `word` was probably meant to be, or "".
std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates);
// " Did you mean X?", or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates,
                       absl::string_view prefix = "");

// The pages of `opmill help` and `opmill help VERB`.
std::string HelpPage(absl::Span<const Verb* const> verbs);
std::string HelpPage(const Verb& verb);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMMAND_LINE_H_
