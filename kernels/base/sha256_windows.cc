#include <windows.h>
// After windows.h, whose types it uses.
#include <bcrypt.h>

#include <cstdlib>

#include "kernels/base/sha256.h"

namespace opmill {
namespace {

BCRYPT_ALG_HANDLE OpenProvider() {
  BCRYPT_ALG_HANDLE provider = nullptr;
  if (BCryptOpenAlgorithmProvider(&provider, BCRYPT_SHA256_ALGORITHM, nullptr, 0) != 0) {
    std::abort();
  }
  return provider;
}

}  // namespace

std::string Sha256(absl::string_view bytes) {
  static const BCRYPT_ALG_HANDLE provider = OpenProvider();
  std::string digest(kSha256Bytes, '\0');
  auto* const input = reinterpret_cast<UCHAR*>(const_cast<char*>(bytes.data()));
  const NTSTATUS status =
      BCryptHash(provider, nullptr, 0, input, static_cast<ULONG>(bytes.size()),
                 reinterpret_cast<UCHAR*>(digest.data()), static_cast<ULONG>(digest.size()));
  if (status != 0) std::abort();
  return digest;
}

}  // namespace opmill
