#include "server/status/error_reason.h"

#include <utility>

#include "kernels/base/status_payload.h"

namespace opmill {
namespace {

constexpr char kPayload[] = "opmill.dev/reason";

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  return WithPayload(std::move(status), kPayload, reason);
}

std::optional<std::string> ErrorReasonOf(const absl::Status& status) {
  return PayloadOf(status, kPayload);
}

}  // namespace opmill
