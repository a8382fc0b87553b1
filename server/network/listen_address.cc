#include "server/network/listen_address.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/server_address.h"

namespace opmill {
namespace {

absl::Status CheckHttpAddress(const char* flag, const std::string& address) {
  if (address.empty() || PortOf(address).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " is \"", address, "\"; it must be host:port with a port from 0 to 65535."));
}

}  // namespace

absl::Status CheckAddress(const std::string& address) {
  if (absl::StartsWith(address, "unix:") || PortOf(address).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--address is \"", address,
                   "\"; it must be host:port with a port from 0 to 65535, or unix:path."));
}

absl::Status CheckExposure(const ServerOptions& options) {
  const AccessOptions& access = options.access;
  if (access.tls_cert.empty() != access.tls_key.empty()) {
    const bool has_cert = access.tls_key.empty();
    return absl::InvalidArgumentError(absl::StrCat(
        has_cert ? "--tls_cert" : "--tls_key", " is given without ",
        has_cert ? "--tls_key" : "--tls_cert", "; a certificate and its key belong together."));
  }
  if (!access.tls_client_ca.empty() && access.tls_cert.empty()) {
    return absl::InvalidArgumentError(
        "--tls_client_ca requires TLS: set --tls_cert and --tls_key too.");
  }
  const std::string& metrics = options.metrics_address;
  RETURN_IF_ERROR(CheckHttpAddress("--metrics_address", metrics));
  RETURN_IF_ERROR(CheckHttpAddress("--http_address", options.http_address));
  if (options.insecure) return absl::OkStatus();
  if (!metrics.empty() && !IsLoopback(metrics)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--metrics_address is \"", metrics,
        "\", which other machines can reach, and uses clear text: set --insecure if everyone on "
        "that network may read it."));
  }
  std::vector<std::pair<const char*, std::string>> addresses;
  for (const std::string& address : options.addresses) addresses.emplace_back("--address", address);
  if (!options.http_address.empty()) addresses.emplace_back("--http_address", options.http_address);
  for (const auto& [flag, address] : addresses) {
    if (access.uses_tls() || IsLoopback(address)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " is \"", address,
        "\", which other machines can reach, and would use clear text: set --tls_cert and "
        "--tls_key, or --insecure if everyone on that network may read and send."));
  }
  return absl::OkStatus();
}

bool AllowsSharedMemory(const ServerOptions& options) {
  if (options.shared_memory != SharedMemoryChoice::kAuto) {
    return options.shared_memory == SharedMemoryChoice::kOn;
  }
  if (!options.http_address.empty() && !IsLoopback(options.http_address)) return false;
  return std::all_of(options.addresses.begin(), options.addresses.end(),
                     [](const std::string& address) { return IsLoopback(address); });
}

}  // namespace opmill
