// opmill health: grpc.health.v1, for scripts and containers.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/common.h"
#include "client/cli/verbs.h"
#include "proto/json_text.h"

namespace opmill {
namespace {

int Health(const CommandLine& line) {
  FlagReader flags(line);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<std::string> health = client->CheckHealth(line.Get("service").value_or(""));
  if (!health.ok()) return Fail(health.status());
  Print(line.Has("json") ? absl::StrCat("{\"status\":", JsonString(*health), "}\n")
                         : absl::StrCat(*health, "\n"));
  return *health == "SERVING" ? kDone : kFailed;
}

}  // namespace

const Verb& HealthVerb() {
  static const Verb* const verb = new Verb{
      .name = "health",
      .summary = "asks whether the server serves; exit code 0 where it does",
      .details = "Prints SERVING or NOT_SERVING, which is the server's answer to grpc.health.v1.\n",
      .flags = WithCommonFlags(
          {{"service", "NAME", "ask about opmill.v1.OperatorService; without: the server"}}),
      .run = &Health};
  return *verb;
}

}  // namespace opmill
