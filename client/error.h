// Errors of the server as absl::Status: code and message, with the google.rpc details as payloads.
#ifndef OPMILL_CLIENT_ERROR_H_
#define OPMILL_CLIENT_ERROR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace opmill {

// The status of a call. CANCELLED without details becomes Unavailable unless `caller_cancelled`,
// because gRPC reports the loss of a server that way. So does UNKNOWN for an incomplete response.
absl::Status FromGrpcStatus(const grpc::Status& status, bool caller_cancelled = false);
// The status of one execution of a stream.
absl::Status FromRpcStatus(const google::rpc::Status& status);

// BadRequest: the path of a field from the root of the request ("operator.reduce.axes[1]"), and the
// error.
struct FieldViolation {
  std::string field;
  std::string description;
};
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);
// RetryInfo: present if a retry may succeed.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);
// ErrorInfo of domain "opmill", which every error of the server carries. Absent if the error comes
// from gRPC or from the client.
std::optional<std::string> ReasonOf(const absl::Status& status);

// The message for people, preceded by the fields that it is about.
std::string Describe(const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ERROR_H_
