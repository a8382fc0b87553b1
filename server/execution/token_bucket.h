// Limits how often something happens.
#ifndef OPMILL_SERVER_EXECUTION_TOKEN_BUCKET_H_
#define OPMILL_SERVER_EXECUTION_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace opmill {

// Allows `per_second` events per second on average. After a pause it allows as many at once as in a
// second, and at least one. Not thread-safe.
class TokenBucket {
 public:
  // 0: no limit.
  explicit TokenBucket(double per_second = 0)
      : per_second_(per_second), most_(std::max(1.0, per_second)), left_(most_) {}

  // Counts an event and returns zero if it may happen now; else returns how long to wait.
  absl::Duration Take(absl::Time now) {
    if (per_second_ <= 0) return absl::ZeroDuration();
    if (now > filled_at_) {
      left_ = std::min(most_, left_ + absl::ToDoubleSeconds(now - filled_at_) * per_second_);
      filled_at_ = now;
    }
    if (left_ < 1) return absl::Seconds((1 - left_) / per_second_);
    left_ -= 1;
    return absl::ZeroDuration();
  }

  // The event that was counted last did not happen.
  void Return() { left_ = std::min(most_, left_ + 1); }

  // How long a pause must be until the bucket is as at first.
  absl::Duration time_to_fill() const {
    return per_second_ <= 0 ? absl::ZeroDuration() : absl::Seconds(most_ / per_second_);
  }

 private:
  double per_second_;
  double most_;
  double left_;
  absl::Time filled_at_ = absl::InfinitePast();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_TOKEN_BUCKET_H_
