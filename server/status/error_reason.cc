#include "server/status/error_reason.h"

#include "absl/strings/cord.h"

namespace opmill {
namespace {

constexpr char kPayload[] = "opmill.dev/reason";

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kPayload, absl::Cord(reason));
  return status;
}

std::optional<std::string> ErrorReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace opmill
