#include "client/channel.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/grpc_conversions.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/server_address.h"

namespace opmill {
namespace {

// Calls alternate between servers. gRPC does not retry executions, because it cannot retry once a
// response has begun or if the request exceeds its buffer; client/retry.h does.
constexpr absl::string_view kServiceConfig = R"({
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [
      {"service": "opmill.v1.OperatorService", "method": "GetServerInfo"},
      {"service": "opmill.v1.OperatorService", "method": "GetStatistics"},
      {"service": "opmill.v1.OperatorService", "method": "CompileOperator"}
    ],
    "retryPolicy": {
      "maxAttempts": 5,
      "initialBackoff": "0.25s",
      "maxBackoff": "2s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }])";

// Of several servers, only those that report SERVING get calls. With a single server, this would
// hide its error messages while it drains.
constexpr absl::string_view kHealthChecks = R"(,
  "healthCheckConfig": {"serviceName": "opmill.v1.OperatorService"})";

bool IsIpv4(absl::string_view address) {
  return absl::c_all_of(address,
                        [](char c) { return absl::ascii_isdigit(c) || c == '.' || c == ':'; });
}

constexpr char kExampleHost[] = "127.0.0.1";
constexpr int kDefaultPort = 50051;

// gRPC would take 443 for a missing port, and wrap around a port that is too large.
absl::Status CheckAddress(absl::string_view address) {
  const size_t colons = static_cast<size_t>(absl::c_count(address, ':'));
  const bool is_bare_ipv6 = colons > 1 && absl::c_all_of(address, [](char c) {
                              return absl::ascii_isxdigit(c) || c == ':';
                            });
  if (absl::StartsWith(address, "unix:")) return absl::OkStatus();
  const bool is_url = absl::StartsWith(address, "http://") || absl::StartsWith(address, "https://");
  if (!is_bare_ipv6 && !is_url && PortOf(address).value_or(0) != 0) {
    return absl::OkStatus();
  }
  const bool is_bare_name = !address.empty() && absl::c_all_of(address, [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
  const std::string host = is_bare_name   ? std::string(address)
                           : is_bare_ipv6 ? absl::StrCat("[", address, "]")
                                          : kExampleHost;
  return absl::InvalidArgumentError(absl::StrCat("The server address is \"", Excerpt(address),
                                                 "\"; it must be host:port, for example ", host,
                                                 ":", kDefaultPort, "."));
}

struct Target {
  std::string uri;
  bool is_group = false;
};

// gRPC accepts several addresses only as literals of one family.
absl::StatusOr<Target> ReadTarget(const std::string& text) {
  const std::vector<absl::string_view> addresses = absl::StrSplit(text, ',');
  for (const absl::string_view address : addresses) RETURN_IF_ERROR(CheckAddress(address));
  if (addresses.size() == 1) return Target{text, absl::StartsWith(text, "dns:")};
  if (absl::c_all_of(addresses, IsIpv4)) return Target{absl::StrCat("ipv4:", text), true};
  if (absl::c_all_of(addresses, [](absl::string_view a) { return absl::StartsWith(a, "["); })) {
    return Target{absl::StrCat("ipv6:", text), true};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text,
                   "\" lists several servers, which are given as 10.0.0.1:50051,10.0.0.2:50051 or "
                   "[::1]:50051,[::1]:50052; for one name of several addresses write "
                   "dns:///name:port."));
}

}  // namespace

bool StaysOnThisMachine(const std::string& target) {
  const std::vector<absl::string_view> addresses = absl::StrSplit(target, ',');
  return absl::c_all_of(addresses, IsLoopback);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& target,
                                                           const ClientOptions& options) {
  ASSIGN_OR_RETURN(const Target servers, ReadTarget(target));
  grpc::ChannelArguments arguments;
  const size_t max_bytes =
      std::min<size_t>(options.max_received_message_bytes, std::numeric_limits<int>::max());
  arguments.SetMaxReceiveMessageSize(static_cast<int>(max_bytes));
  arguments.SetMaxSendMessageSize(-1);  // only the server's limit applies
  // A shared connection could wait for its next attempt after a failure of another client, although
  // the server is back.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A server that comes back is connected to before the attempts of a call are used up.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetServiceConfigJSON(
      absl::StrCat(kServiceConfig, servers.is_group ? kHealthChecks : "", "}"));
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = options.tls->authorities;
    ssl.pem_cert_chain = options.tls->certificate;
    ssl.pem_private_key = options.tls->key;
    credentials = grpc::SslCredentials(ssl);
    if (!options.tls->server_name.empty()) {
      arguments.SetSslTargetNameOverride(options.tls->server_name);
    }
  }
  return grpc::CreateCustomChannel(servers.uri, credentials, arguments);
}

void SleepUntilConnected(grpc::Channel& channel, absl::Duration time) {
  const auto deadline = GrpcDeadline(time);
  while (channel.WaitForStateChange(channel.GetState(/*try_to_connect=*/true), deadline)) {
    if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return;
  }
}

}  // namespace opmill
