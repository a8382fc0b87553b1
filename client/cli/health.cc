// opmill health: health checks by grpc.health.v1, for scripts and containers.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/connection_flags.h"
#include "client/cli/verbs.h"
#include "kernels/base/json_text.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(200);  // between attempts of --wait
constexpr absl::Duration kMinTry = absl::Milliseconds(500);

int Tell(const CommandLine& line, const absl::StatusOr<std::string>& health) {
  if (!health.ok()) return Fail(health.status());
  Print(line.Has("json") ? absl::StrCat("{\"status\":", JsonString(*health), "}\n")
                         : absl::StrCat(*health, "\n"));
  return *health == "SERVING" ? kDone : kFailed;
}

// Errors that may disappear when the server has started or is less busy.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Repeats the check until the server is serving or `time` has passed. Each attempt makes a new
// connection, to avoid gRPC's backoff after failed ones.
int Wait(const CommandLine& line, const Endpoint& endpoint, const std::string& service,
         absl::Duration time) {
  const absl::Time end = SteadyNow() + time;
  absl::StatusOr<std::string> health = absl::UnknownError("");
  bool has_answered = false;
  for (;;) {
    const absl::Duration left = std::max(end - SteadyNow(), kMinTry);
    ClientOptions options = endpoint.options;
    options.connect_timeout = std::min(options.connect_timeout, left);
    options.timeout = std::min(options.timeout, left);
    absl::StatusOr<Client> client = Client::Connect(endpoint.server, options);
    if (client.ok()) {
      has_answered = true;
      health = client->CheckHealth(service);
      const bool is_over = health.ok() ? *health == "SERVING" : !MayPass(health.status());
      if (is_over) return Tell(line, health);
    }
    const bool may_pass = client.ok() || MayPass(client.status());
    if (may_pass && SteadyNow() + kPause < end) {
      absl::SleepFor(kPause);
      continue;
    }
    return has_answered ? Tell(line, health)
                        : ExplainConnectFailure(line, endpoint, client.status());
  }
}

int Health(const CommandLine& line) {
  FlagReader flags(line);
  const absl::Duration wait = flags.Time("wait", absl::ZeroDuration());
  int exit_code = kDone;
  const std::optional<Endpoint> endpoint = ReadEndpoint(flags, exit_code);
  if (!endpoint) return exit_code;
  const std::string service = line.Get("service").value_or("");
  if (line.Has("wait")) return Wait(line, *endpoint, service, wait);
  absl::StatusOr<Client> client = Client::Connect(endpoint->server, endpoint->options);
  if (!client.ok()) return ExplainConnectFailure(line, *endpoint, client.status());
  return Tell(line, client->CheckHealth(service));
}

}  // namespace

const Verb& HealthVerb() {
  static const Verb* const verb = new Verb{
      .name = "health",
      .summary = "checks whether the server is serving; exit code 0 if it is",
      .details =
          "Prints SERVING or NOT_SERVING, the server's answer to grpc.health.v1. With --wait, "
          "repeats\n"
          "the check until the answer is SERVING. If the time runs out, the exit code is 1, or 3 "
          "if no\n"
          "server has answered.\n\n"
          "  opmill health --wait 30s\n",
      .flags =
          WithCommonFlags({{"service", "NAME",
                            "a service, such as opmill.v1.OperatorService (default: the server)"},
                           {"wait", "TIME", "wait up to this time for SERVING: 30s, 2m"}}),
      .run = &Health};
  return *verb;
}

}  // namespace opmill
