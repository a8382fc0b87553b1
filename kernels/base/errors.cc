#include "kernels/base/errors.h"

#include "absl/strings/cord.h"

namespace opmill {
namespace {

constexpr char kFieldPayload[] = "opmill.dev/field";

}  // namespace

absl::Status WithField(absl::Status status, absl::string_view field) {
  status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

absl::Status InvalidField(absl::string_view field, absl::string_view sentence) {
  return WithField(absl::InvalidArgumentError(sentence), field);
}

absl::Status UnsupportedAtLevel(absl::string_view field, absl::string_view sentence) {
  return WithField(absl::FailedPreconditionError(sentence), field);
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace opmill
