#include "server/status/retry_delay.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace opmill {
namespace {

constexpr char kRetryPayload[] = "opmill.dev/retry_delay_ms";
constexpr absl::Duration kUnavailableDelay = absl::Seconds(1);

}  // namespace

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(delay))));
  return status;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kRetryPayload)) {
    int64_t milliseconds = 0;
    if (absl::SimpleAtoi(std::string(*payload), &milliseconds)) {
      return absl::Milliseconds(milliseconds);
    }
  }
  if (absl::IsUnavailable(status)) return kUnavailableDelay;
  return std::nullopt;
}

}  // namespace opmill
