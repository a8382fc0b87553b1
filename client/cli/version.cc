// opmill version: prints the version of this program; `opmill info` prints the server's.
#include "absl/strings/str_cat.h"
#include "client/cli/error_report.h"
#include "client/cli/verbs.h"
#include "kernels/base/json_text.h"

namespace opmill {
namespace {

int Version(const CommandLine& line) {
  Print(line.Has("json") ? absl::StrCat("{\"version\":", JsonString(OPMILL_VERSION), "}\n")
                         : "opmill " OPMILL_VERSION "\n");
  return kDone;
}

}  // namespace

const Verb& VersionVerb() {
  static const Verb* const verb =
      new Verb{.name = "version",
               .summary = "prints the version of this program (also -v, --version)",
               .details = "`opmill info` prints the server's version.\n",
               .flags = {{"json", "", "print JSON"}},
               .run = &Version};
  return *verb;
}

}  // namespace opmill
