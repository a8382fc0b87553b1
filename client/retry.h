// Retries of executions. They have no side effects, so that any server may compute them again.
#ifndef OPMILL_CLIENT_RETRY_H_
#define OPMILL_CLIENT_RETRY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Runs `attempt` until it ends with another status than Unavailable, at most `max_attempts` times
// and within `timeout`; each attempt gets the remaining time. Between attempts it calls `sleep`
// with the delay that the server requests, else with exponential backoff.
absl::StatusOr<v1::ExecutionStatistics> Retry(
    int max_attempts, absl::Duration timeout, absl::FunctionRef<void(absl::Duration)> sleep,
    absl::FunctionRef<absl::StatusOr<v1::ExecutionStatistics>(absl::Duration remaining)> attempt);

}  // namespace opmill

#endif  // OPMILL_CLIENT_RETRY_H_
