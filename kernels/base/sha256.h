// SHA-256, for keys and checksums. The implementation is the system's: OpenSSL, or CNG on Windows.
#ifndef OPMILL_KERNELS_BASE_SHA256_H_
#define OPMILL_KERNELS_BASE_SHA256_H_

#include <cstddef>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace opmill {

inline constexpr size_t kSha256Bytes = 32;

// 32 raw bytes. Ends the process if the system cannot compute it: equal digests of different bytes
// would be taken for equal keys.
std::string Sha256(absl::string_view bytes);

// 64 lower-case digits.
inline std::string Sha256Hex(absl::string_view bytes) {
  return absl::BytesToHexString(Sha256(bytes));
}

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_SHA256_H_
