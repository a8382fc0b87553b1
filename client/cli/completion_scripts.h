// Generates shell completion scripts.
#ifndef OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_
#define OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/command_line.h"

namespace opmill {

// The scripts complete verbs, flags, arguments, and values that the table lists; after a flag whose
// value is a FILE, they complete file names. The flags in `leading` may also precede the verb.
std::string BashCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
std::string ZshCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);
std::string FishCompletion(absl::Span<const Verb> verbs, absl::Span<const Flag> leading);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMPLETION_SCRIPTS_H_
