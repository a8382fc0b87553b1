#include "client/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "proto/duration.h"

namespace opmill {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com/";
constexpr char kDomain[] = "opmill";
// gRPC's message for an incomplete response, when a proxy loses the server.
constexpr char kCutOff[] = "Stream removed";

absl::Status MakeStatus(int code, const std::string& message, const google::rpc::Status& details) {
  if (code == 0) return absl::OkStatus();
  // gRPC and absl use the same numbers; absl maps unknown ones to UNKNOWN.
  absl::Status status(static_cast<absl::StatusCode>(code), message);
  for (const google::protobuf::Any& detail : details.details()) {
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return status;
}

template <typename Detail>
std::optional<Detail> DetailOf(const absl::Status& status) {
  const std::string url = absl::StrCat(kTypePrefix, Detail::descriptor()->full_name());
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  Detail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status, bool caller_cancelled) {
  google::rpc::Status details;
  // Empty or a google.rpc.Status; anything else is ignored.
  if (!details.ParseFromString(status.error_details())) details.Clear();
  std::string sentence = status.error_message();
  int code = status.error_code();
  if (!status.ok() && details.code() != 0) {
    // The server's status. gRPC may report a reset by a proxy after it instead.
    code = details.code();
    sentence = details.message();
  }
  if (details.details().empty()) {  // made by gRPC, not by the server
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      sentence = "The deadline passed before the server answered.";
    } else if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      sentence = absl::StrCat("The connection to the server failed: ", sentence, ".");
    } else if (status.error_code() == grpc::StatusCode::CANCELLED && caller_cancelled) {
      sentence = "The caller cancelled the call.";
    } else if (status.error_code() == grpc::StatusCode::CANCELLED) {
      // The call arrived while the port was closing. CANCELLED from the server has details.
      code = static_cast<int>(absl::StatusCode::kUnavailable);
      sentence = "The server closed the call without an answer.";
    } else if (status.error_code() == grpc::StatusCode::UNKNOWN && sentence == kCutOff) {
      code = static_cast<int>(absl::StatusCode::kUnavailable);
      sentence = "The server's response is incomplete.";
    }
  }
  return MakeStatus(code, sentence, details);
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  return MakeStatus(status.code(), status.message(), status);
}

std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  if (const auto detail = DetailOf<google::rpc::BadRequest>(status)) {
    for (const auto& violation : detail->field_violations()) {
      violations.push_back({violation.field(), violation.description()});
    }
  }
  return violations;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto detail = DetailOf<google::rpc::RetryInfo>(status);
  if (!detail) return std::nullopt;
  return DecodeDuration(detail->retry_delay());
}

std::optional<std::string> ReasonOf(const absl::Status& status) {
  const auto detail = DetailOf<google::rpc::ErrorInfo>(status);
  if (!detail || detail->domain() != kDomain) return std::nullopt;
  return detail->reason();
}

std::string Describe(const absl::Status& status) {
  std::string text;
  for (const FieldViolation& violation : FieldViolationsOf(status)) {
    const std::string& sentence =
        violation.description.empty() ? std::string(status.message()) : violation.description;
    const bool is_prefixed = absl::StartsWith(sentence, violation.field);
    absl::StrAppend(&text, text.empty() ? "" : "\n", is_prefixed ? "" : violation.field,
                    is_prefixed ? "" : ": ", sentence);
  }
  if (text.empty()) text = std::string(status.message());
  if (text.empty()) text = absl::StatusCodeToString(status.code());
  if (const auto delay = RetryDelayOf(status)) {
    absl::StrAppend(&text, " Try again in ", absl::FormatDuration(*delay), ".");
  }
  return text;
}

}  // namespace opmill
