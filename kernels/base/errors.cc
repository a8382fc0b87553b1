#include "kernels/base/errors.h"

#include <utility>

#include "kernels/base/status_payload.h"

namespace opmill {
namespace {

constexpr char kFieldPayload[] = "opmill.dev/field";

}  // namespace

absl::Status WithField(absl::Status status, absl::string_view field) {
  return WithPayload(std::move(status), kFieldPayload, field);
}

absl::Status InvalidField(absl::string_view field, absl::string_view sentence) {
  return WithField(absl::InvalidArgumentError(sentence), field);
}

absl::Status UnsupportedAtLevel(absl::string_view field, absl::string_view sentence) {
  return WithField(absl::FailedPreconditionError(sentence), field);
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  return PayloadOf(status, kFieldPayload);
}

absl::Status CheckAbandoned(const std::stop_token& abandoned) {
  return abandoned.stop_requested() ? absl::CancelledError("The work was abandoned.")
                                    : absl::OkStatus();
}

}  // namespace opmill
