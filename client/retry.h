// Executions are pure: one that a server could not end, another may compute anew, or the same one
// when it is back.
#ifndef OPMILL_CLIENT_RETRY_H_
#define OPMILL_CLIENT_RETRY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Runs `attempt`, and again while it ends Unavailable: at most `max_attempts` times, all within
// `timeout`, of which each is told what remains. In between it waits as long as the server says, or
// else twice as long each time.
absl::StatusOr<v1::ExecutionStatistics> Retry(
    int max_attempts, absl::Duration timeout,
    absl::FunctionRef<absl::StatusOr<v1::ExecutionStatistics>(absl::Duration remaining)> attempt);

}  // namespace opmill

#endif  // OPMILL_CLIENT_RETRY_H_
