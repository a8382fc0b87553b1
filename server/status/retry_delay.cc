#include "server/status/retry_delay.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/status_payload.h"

namespace opmill {
namespace {

constexpr char kRetryPayload[] = "opmill.dev/retry_delay_ms";
constexpr absl::Duration kUnavailableDelay = absl::Seconds(1);

}  // namespace

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  return WithPayload(std::move(status), kRetryPayload,
                     absl::StrCat(absl::ToInt64Milliseconds(delay)));
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  if (const auto text = PayloadOf(status, kRetryPayload)) {
    int64_t milliseconds = 0;
    if (absl::SimpleAtoi(*text, &milliseconds)) {
      return absl::Milliseconds(milliseconds);
    }
  }
  if (absl::IsUnavailable(status)) return kUnavailableDelay;
  return std::nullopt;
}

}  // namespace opmill
