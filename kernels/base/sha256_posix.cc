#include <openssl/sha.h>

#include <cstdlib>

#include "kernels/base/sha256.h"

namespace opmill {

std::string Sha256(absl::string_view bytes) {
  static_assert(kSha256Bytes == SHA256_DIGEST_LENGTH);
  std::string digest(kSha256Bytes, '\0');
  const unsigned char* const computed =
      SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
             reinterpret_cast<unsigned char*>(digest.data()));
  if (computed == nullptr) std::abort();
  return digest;
}

}  // namespace opmill
