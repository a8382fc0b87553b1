#include "client/cli/verbs.h"

namespace opmill {

absl::Span<const Verb* const> Verbs() {
  static const Verb* const verbs[] = {
      &RunVerb(),     &DemoVerb(),       &BenchVerb(),  &InfoVerb(),  &ModelsVerb(),
      &ExplainVerb(), &TensorsVerb(),    &SearchVerb(), &StatsVerb(), &HealthVerb(),
      &CompileVerb(), &CompletionVerb(), &VersionVerb()};
  return verbs;
}

}  // namespace opmill
