// How fast a caller must send and read to keep room that others need.
#ifndef OPMILL_SERVER_EXECUTION_PACE_H_
#define OPMILL_SERVER_EXECUTION_PACE_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace opmill {

// Whether a caller has sent a mebibyte per second, on average over kPatience and over all of its
// executions. Not thread-safe.
class Pace {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // How long a caller may take for so many bytes.
  static absl::Duration TimeFor(uint64_t bytes) {
    return bytes * (absl::Seconds(1) / (int64_t{1} << 20));
  }

  void Add(uint64_t bytes, absl::Time now) {
    enough_until_ = std::min(std::max(enough_until_, now) + TimeFor(bytes), now + kPatience);
  }
  bool IsSlow(absl::Time now) const { return now > enough_until_; }

 private:
  absl::Time enough_until_ = absl::InfinitePast();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_PACE_H_
