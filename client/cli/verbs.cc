#include "client/cli/verbs.h"

namespace opmill {

absl::Span<const Verb* const> Verbs() {
  static const Verb* const verbs[] = {
      &RunVerb(),   &DemoVerb(),   &BenchVerb(),   &InfoVerb(),       &ModelsVerb(), &TensorsVerb(),
      &StatsVerb(), &HealthVerb(), &CompileVerb(), &CompletionVerb(), &VersionVerb()};
  return verbs;
}

}  // namespace opmill
