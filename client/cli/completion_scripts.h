// Completion of the command line, as scripts for shells.
#ifndef OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_
#define OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/command_line.h"

namespace opmill {

// For `opmill` with these verbs; the flags in `leading` may also stand before the verb. Verbs,
// flags, arguments and values that the table lists are completed; after a flag of a FILE, files.
std::string BashCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
std::string ZshCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
std::string FishCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_
