// Errors after which a retry may succeed.
#ifndef OPMILL_SERVER_STATUS_RETRY_DELAY_H_
#define OPMILL_SERVER_STATUS_RETRY_DELAY_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace opmill {

// For what other callers hold for a moment.
inline constexpr absl::Duration kUsualRetryDelay = absl::Milliseconds(500);

// Marks an error after which a retry may succeed, not before `delay`. Unavailable needs no mark.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);
inline bool IsRetryable(const absl::Status& status) { return RetryDelayOf(status).has_value(); }

}  // namespace opmill

#endif  // OPMILL_SERVER_STATUS_RETRY_DELAY_H_
