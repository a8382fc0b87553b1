#include "server/access/forwarding.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

// Values of keys with this ending may have any bytes.
constexpr char kForwardedKey[] = "opmill-forwarded-bin";
constexpr size_t kSecretBytes = 32;

std::string RandomSecret() {
  std::string secret(kSecretBytes, 0);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), kSecretBytes) != 1) std::abort();
  return secret;
}

}  // namespace

Forwarding::Forwarding() : secret_(RandomSecret()) {}

void Forwarding::Mark(const ForwardedCaller& caller, grpc::ClientContext& call) const {
  call.AddMetadata(kForwardedKey, absl::StrCat(secret_, caller.peer, "\n", caller.name));
}

std::optional<ForwardedCaller> Forwarding::Find(const grpc::CallbackServerContext& call) const {
  const auto found = call.client_metadata().find(kForwardedKey);
  if (found == call.client_metadata().end()) return std::nullopt;
  const absl::string_view value(found->second.data(), found->second.size());
  if (value.size() < kSecretBytes ||
      CRYPTO_memcmp(value.data(), secret_.data(), kSecretBytes) != 0) {
    return std::nullopt;
  }
  const absl::string_view caller = value.substr(kSecretBytes);
  const size_t peer = caller.find('\n');
  return ForwardedCaller{std::string(caller.substr(0, peer)), std::string(caller.substr(peer + 1))};
}

}  // namespace opmill
