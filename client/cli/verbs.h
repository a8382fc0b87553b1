// The verbs of `opmill`; one file each.
#ifndef OPMILL_CLIENT_CLI_VERBS_H_
#define OPMILL_CLIENT_CLI_VERBS_H_

#include "absl/types/span.h"
#include "client/cli/command_line.h"

namespace opmill {

const Verb& RunVerb();
const Verb& DemoVerb();
const Verb& BenchVerb();
const Verb& InfoVerb();
const Verb& ModelsVerb();
const Verb& ExplainVerb();
const Verb& SearchVerb();
const Verb& TensorsVerb();
const Verb& StatsVerb();
const Verb& HealthVerb();
const Verb& CompileVerb();
const Verb& CompletionVerb();
const Verb& VersionVerb();

// All verbs, in the order of the help page.
absl::Span<const Verb* const> Verbs();

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_VERBS_H_
