#include "client/cli/connection_flags.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/channel.h"
#include "client/mapped_file.h"
#include "client/names.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/nearest.h"
#include "kernels/base/process_io.h"

namespace opmill {
namespace {

constexpr char kDefaultServer[] = "127.0.0.1:50051";
constexpr absl::Duration kMinConnectTimeout = absl::Seconds(1);

absl::StatusOr<TlsOptions> ReadTls(const CommandLine& line) {
  TlsOptions tls;
  const std::pair<const char*, std::string*> files[] = {
      {"tls_ca", &tls.authorities}, {"tls_cert", &tls.certificate}, {"tls_key", &tls.key}};
  for (const auto& [flag, text] : files) {
    const std::optional<std::string> path = line.Get(flag);
    if (!path) continue;
    ASSIGN_OR_RETURN(*text, ReadTextFile(*path));
  }
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "--tls_cert and --tls_key must be given together; one of them is missing or empty.");
  }
  tls.server_name = line.Get("tls_server_name").value_or("");
  return tls;
}

// There is no flag for the token itself: other users can read the command lines of processes.
absl::StatusOr<std::string> ReadToken(const CommandLine& line) {
  const std::optional<std::string> path = line.Get("token_file");
  if (!path) return Environment("OPMILL_TOKEN").value_or("");
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(*path));
  std::string token(absl::StripAsciiWhitespace(text));
  if (!token.empty() && std::all_of(token.begin(), token.end(), &absl::ascii_isgraph)) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("--token_file: ", *path, " must hold exactly one token."));
}

bool SpeaksTls(const CommandLine& line) {
  for (const char* flag : {"tls", "tls_ca", "tls_cert", "tls_key", "tls_server_name"}) {
    if (line.Has(flag)) return true;
  }
  return false;
}

std::string ServerOf(const CommandLine& line) {
  if (const auto server = line.Get("server")) return *server;
  const std::string server = Environment("OPMILL_SERVER").value_or("");
  return server.empty() ? kDefaultServer : server;
}

// The server's variables, which are not misspellings of these, may be set too.
void WarnOfMisspelledVariables() {
  constexpr absl::string_view kPrefix = "OPMILL_";
  const std::vector<std::string> known = {"SERVER", "TOKEN"};
  for (const std::string& variable : EnvironmentNames()) {
    absl::string_view name = variable;
    if (!absl::ConsumePrefix(&name, kPrefix) || absl::c_linear_search(known, name)) continue;
    const std::string meant = DidYouMean(name, known, kPrefix);
    if (!meant.empty()) Warn(absl::StrCat(Excerpt(variable), " has no effect.", meant));
  }
}

// How the user can fix a failed connection.
std::string HintFor(const CommandLine& line, const std::string& server, absl::string_view why) {
  if (absl::StartsWith(why, "The server at")) {
    return "Flags for TLS: --tls, --tls_ca, --tls_cert, --tls_key and "
           "--tls_server_name.";
  }
  if (!StaysOnThisMachine(server)) {
    return absl::StrCat("The address comes from ",
                        line.Has("server") ? "--server" : "OPMILL_SERVER", ".");
  }
  return absl::StrCat("Start a server with: opmill-server --address=", server,
                      "\nOr pass the address of a running server with --server or OPMILL_SERVER.");
}

}  // namespace

std::vector<Flag> WithCommonFlags(std::vector<Flag> own) {
  const Flag common[] = {
      {"server", "HOST:PORT,...",
       "server addresses (default OPMILL_SERVER, else 127.0.0.1:50051); several share the load"},
      {"tls", "", "use TLS, with the system's certificate authorities"},
      {"tls_ca", "FILE", "use TLS, with these certificate authorities (PEM)"},
      {"tls_cert", "FILE", "client certificate (PEM), for servers that require one"},
      {"tls_key", "FILE", "key of the client certificate (PEM)"},
      {"tls_server_name", "NAME", "name in the server's certificate, if it is not HOST"},
      {"token_file", "FILE", "file with the bearer token (default: the token in OPMILL_TOKEN)"},
      {"insecure", "", "allow sending the token to other machines in clear text"},
      {"deadline", "TIME", "time limit: 5s, 250ms"},
      {"json", "", "print JSON"},
  };
  own.insert(own.end(), std::begin(common), std::end(common));
  return own;
}

int32_t ReadPriority(FlagReader& flags) {
  const std::optional<std::string> text = flags.line().Get("priority");
  int32_t priority = 0;
  if (text.has_value() && !absl::SimpleAtoi(*text, &priority)) {
    flags.Fail("priority", "It must be an integer.");
  }
  return priority;
}

std::optional<v1::FeatureLevel> ReadFeatureLevel(FlagReader& flags) {
  const v1::FeatureLevel level =
      flags.Named("feature_level", &ParseFeatureLevel, v1::FEATURE_LEVEL_UNSPECIFIED);
  if (level == v1::FEATURE_LEVEL_UNSPECIFIED) return std::nullopt;
  return level;
}

std::optional<Endpoint> ReadEndpoint(FlagReader& flags, int& exit_code) {
  const CommandLine& line = flags.line();
  WarnOfMisspelledVariables();
  Endpoint endpoint{ServerOf(line), {}};
  ClientOptions& options = endpoint.options;
  options.timeout = flags.Time("deadline", absl::InfiniteDuration());
  // A short deadline is meant for the call alone, not for connecting.
  options.connect_timeout =
      std::clamp(options.timeout, kMinConnectTimeout, options.connect_timeout);
  if (!flags.status().ok()) {
    exit_code = BadCommandLine(line, flags.status());
    return std::nullopt;
  }
  absl::StatusOr<std::string> token = ReadToken(line);
  if (!token.ok()) {
    exit_code = Fail(token.status());
    return std::nullopt;
  }
  options.token = *std::move(token);
  options.insecure = line.Has("insecure");
  // As other programs take it from the environment, such as otel-cli.
  std::string traceparent = Environment("TRACEPARENT").value_or("");
  if (!traceparent.empty() && absl::c_all_of(traceparent, &absl::ascii_isgraph)) {
    options.traceparent = [traceparent = std::move(traceparent)] { return traceparent; };
  }
  if (SpeaksTls(line)) {
    absl::StatusOr<TlsOptions> tls = ReadTls(line);
    if (!tls.ok()) {
      exit_code = Fail(tls.status());
      return std::nullopt;
    }
    options.tls = *std::move(tls);
  }
  return endpoint;
}

int ExplainConnectFailure(const CommandLine& line, const Endpoint& endpoint,
                          const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return BadCommandLine(line, status);
  if (!absl::IsUnavailable(status)) return Fail(status);
  return ReportError(status, HintFor(line, endpoint.server, status.message()), kNoServer);
}

std::optional<Client> ConnectOrExplain(FlagReader& flags, int& exit_code) {
  const std::optional<Endpoint> endpoint = ReadEndpoint(flags, exit_code);
  if (!endpoint) return std::nullopt;
  absl::StatusOr<Client> client = Client::Connect(endpoint->server, endpoint->options);
  if (client.ok()) return *std::move(client);
  exit_code = ExplainConnectFailure(flags.line(), *endpoint, client.status());
  return std::nullopt;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const absl::Span<const std::byte> bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace opmill
