#include "client/cli/common.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "client/mapped_file.h"
#include "client/names.h"
#include "proto/process.h"

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
    absl::StatusOr<std::string> content = ReadTextFile(*path);
    if (!content.ok()) return content.status();
    *text = *std::move(content);
  }
  return tls;
}

// gRPC would take a port that is missing for 443, and one that is too large for another.
absl::Status CheckServer(const std::string& server) {
  if (absl::StartsWith(server, "unix:")) return absl::OkStatus();
  const size_t colon = server.rfind(':');
  uint32_t port = 0;
  if (colon != std::string::npos && colon > 0 &&
      absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 && port <= 65535 &&
      !absl::StartsWith(server, "http")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("The server is \"", server, "\"; it is host:port, as ", kDefaultServer, "."));
}

}  // namespace

std::vector<Flag> WithCommonFlags(std::vector<Flag> own) {
  const Flag common[] = {
      {"server", "HOST:PORT", "where the server listens (127.0.0.1:50051, or OPMILL_SERVER)"},
      {"tls_ca", "FILE", "speak TLS, and trust these authorities (PEM)"},
      {"tls_cert", "FILE", "this client's certificate (PEM), for servers that ask for one"},
      {"tls_key", "FILE", "the key that belongs to it (PEM)"},
      {"deadline", "TIME", "give up after this long: 5s, 250ms"},
      {"json", "", "print JSON"},
  };
  own.insert(own.end(), std::begin(common), std::end(common));
  return own;
}

std::string ServerOf(const CommandLine& line) {
  if (const auto server = line.Get("server")) return *server;
  const std::string server = Environment("OPMILL_SERVER").value_or("");
  return server.empty() ? kDefaultServer : server;
}

std::optional<v1::FeatureLevel> ReadFeatureLevel(FlagReader& flags) {
  const v1::FeatureLevel level =
      flags.Named("feature_level", &ParseFeatureLevel, v1::FEATURE_LEVEL_UNSPECIFIED);
  if (level == v1::FEATURE_LEVEL_UNSPECIFIED) return std::nullopt;
  return level;
}

std::optional<Client> ConnectOrExplain(FlagReader& flags, int& exit_code) {
  const CommandLine& line = flags.line();
  ClientOptions options;
  options.timeout = flags.Time("deadline", absl::InfiniteDuration());
  // A short deadline is meant for the call, and connecting is not part of that.
  options.connect_timeout =
      std::clamp(options.timeout, kMinConnectTimeout, options.connect_timeout);
  if (!flags.status().ok()) {
    exit_code = BadCommandLine(line, flags.status());
    return std::nullopt;
  }
  if (line.Has("tls_ca") || line.Has("tls_cert") || line.Has("tls_key")) {
    absl::StatusOr<TlsOptions> tls = ReadTls(line);
    if (!tls.ok()) {
      exit_code = Fail(tls.status());
      return std::nullopt;
    }
    options.tls = *std::move(tls);
  }
  const std::string server = ServerOf(line);
  const absl::Status readable = CheckServer(server);
  if (!readable.ok()) {
    exit_code = BadCommandLine(line, readable);
    return std::nullopt;
  }
  absl::StatusOr<Client> client = Client::Connect(server, options);
  if (client.ok()) return *std::move(client);
  std::fprintf(stderr,
               "opmill: %s\nStart a server with: opmill-server --address=%s\nOr name the one that "
               "runs with --server or OPMILL_SERVER.\n",
               std::string(client.status().message()).c_str(), server.c_str());
  exit_code = kNoServer;
  return std::nullopt;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "opmill: %s\n", Describe(status).c_str());
  return kFailed;
}

int BadCommandLine(const CommandLine& line, const absl::Status& status) {
  std::fprintf(stderr, "opmill: %s\n`opmill help %s` tells more.\n",
               std::string(status.message()).c_str(), line.verb().name.c_str());
  return kBadCommandLine;
}

void Print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::Span<const std::byte> bytes = (*file)->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace opmill
