// SHA-256 (FIPS 180-4), for keys and checksums.
#ifndef OPMILL_KERNELS_BASE_SHA256_H_
#define OPMILL_KERNELS_BASE_SHA256_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

inline constexpr size_t kSha256Bytes = 32;

std::string Sha256(absl::string_view bytes);     // 32 raw bytes
std::string Sha256Hex(absl::string_view bytes);  // 64 lower-case digits

}  // namespace opmill

#endif  // OPMILL_KERNELS_BASE_SHA256_H_
