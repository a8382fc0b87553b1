// Sizes and times that tests count in.
#ifndef OPMILL_TESTS_SUPPORT_QUANTITIES_H_
#define OPMILL_TESTS_SUPPORT_QUANTITIES_H_

#include <cstdint>

#include "absl/time/time.h"

namespace opmill {

inline constexpr uint64_t kMebibyte = uint64_t{1} << 20;
inline constexpr uint64_t kGibibyte = uint64_t{1} << 30;

// So long after a fixed time.
inline absl::Time AtSeconds(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }
inline absl::Time AtMilliseconds(int milliseconds) {
  return absl::UnixEpoch() + absl::Milliseconds(milliseconds);
}

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_QUANTITIES_H_
