// Verbs and flags of `opmill` as data, and the parser of a command line. Help pages and completion
// scripts are generated from the same data.
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
  std::string value;  // name of the value in help texts; "" for a switch: true or false
  std::string help;
  std::vector<std::string> choices = {};  // all valid values, if there are few; for completion
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

// A parsed command line, without the verb.
class CommandLine {
 public:
  // Accepts `--flag value` and `--flag=value`; for switches `--flag`, `--noflag`, `--flag=true` and
  // `--flag=false`. Returns InvalidArgument for an unknown flag, a missing value, a repeated flag,
  // or arguments that the verb does not take. `verb` must outlive the result.
  static absl::StatusOr<CommandLine> Parse(const Verb& verb, absl::Span<const std::string> words);

  const Verb& verb() const { return *verb_; }
  // The first argument.
  std::optional<std::string> argument() const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  // Whether the flag is given; for a switch, whether it is true.
  bool Has(const std::string& flag) const;
  // The value; "true" or "false" for a switch; the first value of a flag that repeats.
  std::optional<std::string> Get(const std::string& flag) const;
  // All values, in the order of the command line.
  std::vector<std::string> GetAll(const std::string& flag) const;

 private:
  explicit CommandLine(const Verb& verb) : verb_(&verb) {}

  const Verb* verb_;
  std::vector<std::string> arguments_;
  std::set<std::string> switched_off_;
  std::multimap<std::string, std::string> flags_;  // equal keys in the order of the command line
};

// The texts of `opmill help` and `opmill help VERB`.
std::string HelpPage(absl::Span<const Verb* const> verbs);
std::string HelpPage(const Verb& verb);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMMAND_LINE_H_
