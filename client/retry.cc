#include "client/retry.h"

#include <algorithm>

#include "absl/random/random.h"
#include "client/error.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

constexpr absl::Duration kFirstDelay = absl::Milliseconds(250);
constexpr absl::Duration kMaxDelay = absl::Seconds(2);

}  // namespace

absl::StatusOr<v1::ExecutionStatistics> Retry(
    int max_attempts, absl::Duration timeout, absl::FunctionRef<void(absl::Duration)> sleep,
    absl::FunctionRef<absl::StatusOr<v1::ExecutionStatistics>(absl::Duration remaining)> attempt) {
  const absl::Time deadline = SteadyNow() + timeout;
  absl::Duration delay = kFirstDelay;
  absl::BitGen random;
  for (int attempts = 1;; ++attempts) {
    absl::StatusOr<v1::ExecutionStatistics> result = attempt(deadline - SteadyNow());
    if (result.ok() || !absl::IsUnavailable(result.status()) || attempts >= max_attempts) {
      return result;
    }
    // Jitter, so that clients that failed together do not retry together.
    const absl::Duration wait =
        RetryDelayOf(result.status()).value_or(delay) * absl::Uniform(random, 0.8, 1.2);
    if (SteadyNow() + wait >= deadline) return result;
    sleep(wait);
    delay = std::min(2 * delay, kMaxDelay);
  }
}

}  // namespace opmill
