// The command line as a table of verbs and their flags, and a parser for it.
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
  std::string value;  // name of the value in the help; "" for a switch (true or false)
  std::string help;
  std::vector<std::string> choices = {};  // all allowed values, if they are few
  bool repeats = false;                   // may be given more than once
};

class CommandLine;

struct Verb {
  std::string name;
  std::string arguments;  // "OPERATOR", "OPERATOR [FILE...]", or "" for none
  std::vector<std::string> argument_choices;
  std::string summary;  // one line
  std::string details;  // further paragraphs of the help page
  std::vector<Flag> flags;
  int (*run)(const CommandLine&);  // an ExitCode
};

// The parsed words after the verb.
class CommandLine {
 public:
  // Accepts `--flag value` and `--flag=value`; for switches `--flag`, `--noflag`, `--flag=true` and
  // `--flag=false`. Returns InvalidArgument for an unknown flag, a missing value, a repeated flag,
  // or arguments that the verb does not accept.
  static absl::StatusOr<CommandLine> Parse(const Verb& verb, absl::Span<const std::string> words);

  const Verb& verb() const { return *verb_; }
  // The first argument, if any.
  std::optional<std::string> argument() const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  // True if the flag was given; for a switch, if it was not set to false.
  bool Has(const std::string& flag) const;
  // The value: "true" or "false" for a switch, the first value of a repeated flag.
  std::optional<std::string> Get(const std::string& flag) const;
  // All values, in order.
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
