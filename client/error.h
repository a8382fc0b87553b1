// The server's errors as absl::Status: code and sentence, with the google.rpc details as payloads.
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

// Converts the status of a call. CANCELLED without details comes from the server and becomes
// Unavailable, unless `caller_cancelled`: gRPC does not distinguish the two. An interrupted
// response, which gRPC reports as UNKNOWN, becomes Unavailable too.
absl::Status FromGrpcStatus(const grpc::Status& status, bool caller_cancelled = false);
// Converts the status of one execution of a stream.
absl::Status FromRpcStatus(const google::rpc::Status& status);

// BadRequest: the path of the field from the root of the request ("operator.reduce.axes[1]"), and
// the error there.
struct FieldViolation {
  std::string field;
  std::string description;
};
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);
// RetryInfo: present if a retry may succeed.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);
// ErrorInfo of domain "opmill", which is part of every error of a server. Without it the error
// comes from gRPC or from the client.
std::optional<std::string> ReasonOf(const absl::Status& status);

// The sentence for users, prefixed with the fields that it refers to.
std::string Describe(const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ERROR_H_
