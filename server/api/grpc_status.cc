#include "server/api/grpc_status.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "kernels/base/errors.h"
#include "proto/duration.h"
#include "server/status/error_reason.h"
#include "server/status/retry_delay.h"

namespace opmill {
namespace {

const char* UsualReasonOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "INVALID_REQUEST";
    case absl::StatusCode::kNotFound:
      return "UNKNOWN_MODEL";
    case absl::StatusCode::kUnimplemented:
      return "NOT_SUPPORTED";
    case absl::StatusCode::kFailedPrecondition:
      return "UNSUPPORTED_AT_FEATURE_LEVEL";
    case absl::StatusCode::kResourceExhausted:
      return "LIMIT_REACHED";
    case absl::StatusCode::kUnavailable:
      return "NOT_AVAILABLE";
    case absl::StatusCode::kDeadlineExceeded:
      return "DEADLINE_PASSED";
    case absl::StatusCode::kCancelled:
      return "CANCELLED";
    default:
      return "SERVER_FAULT";
  }
}

}  // namespace

absl::Status UnderPath(absl::string_view path, absl::Status status) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field.has_value()) return status;
  return WithField(std::move(status), absl::StrCat(path, ".", *field));
}

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status to;
  to.set_code(static_cast<int>(status.code()));
  to.set_message(std::string(status.message()));
  if (status.ok()) return to;
  if (const std::optional<std::string> field = FieldOf(status)) {
    google::rpc::BadRequest bad_request;
    google::rpc::BadRequest::FieldViolation& violation = *bad_request.add_field_violations();
    violation.set_field(*field);
    violation.set_description(std::string(status.message()));
    to.add_details()->PackFrom(bad_request);
  }
  if (const std::optional<absl::Duration> delay = RetryDelayOf(status)) {
    google::rpc::RetryInfo retry;
    EncodeDuration(*delay, *retry.mutable_retry_delay());
    to.add_details()->PackFrom(retry);
  }
  google::rpc::ErrorInfo info;
  info.set_reason(ErrorReasonOf(status).value_or(UsualReasonOf(status.code())));
  info.set_domain("opmill");
  to.add_details()->PackFrom(info);
  return to;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      ToRpcStatus(status).SerializeAsString());
}

}  // namespace opmill
