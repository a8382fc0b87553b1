// Retries executions. That is safe because executions are pure: another server, or the same one
// later, gives the same result.
#ifndef OPMILL_CLIENT_RETRY_H_
#define OPMILL_CLIENT_RETRY_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// Calls `attempt`, and repeats it while it ends with Unavailable: at most `max_attempts` times in
// all, within `timeout`. `remaining` is the rest of the timeout. Between attempts it waits as long
// as the server says, otherwise twice as long each time.
absl::StatusOr<v1::ExecutionStatistics> Retry(
    int max_attempts, absl::Duration timeout,
    absl::FunctionRef<absl::StatusOr<v1::ExecutionStatistics>(absl::Duration remaining)> attempt);

}  // namespace opmill

#endif  // OPMILL_CLIENT_RETRY_H_
