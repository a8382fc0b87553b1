#include "client/error.h"

#include <string>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

google::rpc::Status RefusedK() {
  google::rpc::Status status;
  status.set_code(3);
  status.set_message("k (9) is larger than the size (3) of axis (1).");
  google::rpc::BadRequest bad_request;
  auto& violation = *bad_request.add_field_violations();
  violation.set_field("operator.top_k.k");
  violation.set_description("k (9) is larger than the size (3) of axis (1).");
  status.add_details()->PackFrom(bad_request);
  google::rpc::ErrorInfo info;
  info.set_reason("INVALID_DESCRIPTOR");
  info.set_domain("opmill");
  status.add_details()->PackFrom(info);
  return status;
}

TEST(FromRpcStatus, KeepsCodeSentenceFieldAndReason) {
  const absl::Status status = FromRpcStatus(RefusedK());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "k (9) is larger than the size (3) of axis (1).");
  ASSERT_EQ(FieldViolationsOf(status).size(), 1u);
  EXPECT_EQ(FieldViolationsOf(status)[0].field, "operator.top_k.k");
  EXPECT_EQ(ReasonOf(status), "INVALID_DESCRIPTOR");
  EXPECT_EQ(RetryDelayOf(status), std::nullopt);
  EXPECT_EQ(Describe(status), "operator.top_k.k: k (9) is larger than the size (3) of axis (1).");
}

TEST(FromGrpcStatus, ReadsTheDetailsOfACall) {
  const google::rpc::Status refusal = RefusedK();
  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::INVALID_ARGUMENT, refusal.message(), refusal.SerializeAsString()));
  EXPECT_EQ(status, FromRpcStatus(refusal));
}

TEST(FromGrpcStatus, KeepsTheErrorIfAProxyResetTheStream) {
  const google::rpc::Status refusal = RefusedK();
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::CANCELLED,
                                        "Received RST_STREAM with error code 8",
                                        refusal.SerializeAsString())),
            FromRpcStatus(refusal));
}

TEST(FromGrpcStatus, IsOkForOk) { EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok()); }

TEST(FromGrpcStatus, KeepsTheMessageIfDetailsAreUnreadable) {
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed", "\xFF\xFF"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Describe(status), "The connection to the server failed: Socket closed.");
  EXPECT_EQ(ReasonOf(status), std::nullopt);
  EXPECT_TRUE(FieldViolationsOf(status).empty());
}

TEST(FromGrpcStatus, MakesASentenceOfGrpcsOwnDeadline) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded")),
            absl::DeadlineExceededError("The deadline passed before the server answered."));
}

TEST(FromGrpcStatus, ReportsAnUnansweredCallAsUnavailable) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED")),
            absl::UnavailableError("The server closed the call without an answer."));
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"),
                           /*caller_cancelled=*/true),
            absl::CancelledError("The caller cancelled the call."));
  google::rpc::Status ours;
  ours.set_code(1);
  ours.add_details()->PackFrom(google::rpc::ErrorInfo());
  EXPECT_TRUE(absl::IsCancelled(
      FromGrpcStatus(grpc::Status(grpc::StatusCode::CANCELLED, "", ours.SerializeAsString()))));
}

TEST(FromGrpcStatus, ReportsATruncatedResponseAsUnavailable) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::UNKNOWN, "Stream removed")),
            absl::UnavailableError("The server's response is incomplete."));
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::UNKNOWN, "Something else")),
            absl::UnknownError("Something else"));
}

TEST(RetryDelayOf, IsSetIfARetryMaySucceed) {
  google::rpc::Status refusal;
  refusal.set_code(8);
  refusal.set_message("The server has 16384 executions under way, which is its limit.");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(250'000'000);
  refusal.add_details()->PackFrom(retry);
  const absl::Status status = FromRpcStatus(refusal);
  EXPECT_EQ(RetryDelayOf(status), absl::Milliseconds(250));
  EXPECT_EQ(Describe(status),
            "The server has 16384 executions under way, which is its limit. Try again in 250ms.");
}

TEST(ReasonOf, IsEmptyForAnotherDomain) {
  google::rpc::Status refusal;
  refusal.set_code(14);
  google::rpc::ErrorInfo info;
  info.set_reason("PROXY_DOWN");
  info.set_domain("example.com");
  refusal.add_details()->PackFrom(info);
  EXPECT_EQ(ReasonOf(FromRpcStatus(refusal)), std::nullopt);
}

}  // namespace
}  // namespace opmill
