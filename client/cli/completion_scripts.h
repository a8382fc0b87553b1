// Scripts for the completion of command lines in shells.
#ifndef OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_
#define OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/command_line.h"

namespace opmill {

// Complete verbs, flags, and the listed arguments and values; file names after flags with a FILE.
// The flags in `leading` may also precede the verb.
std::string BashCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
std::string ZshCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
std::string FishCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_
