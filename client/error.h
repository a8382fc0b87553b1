// The server's refusals as absl::Status: its code and sentence, and as payloads the google.rpc
// details that came with them.
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

// How a call ended. CANCELLED without details is the server's, and Unavailable here, unless
// `caller_cancelled`: gRPC tells no difference. So is an answer that breaks off, which gRPC calls
// UNKNOWN.
absl::Status FromGrpcStatus(const grpc::Status& status, bool caller_cancelled = false);
// How one execution of a stream ended.
absl::Status FromRpcStatus(const google::rpc::Status& status);

// BadRequest: a path from the root of the request ("operator.reduce.axes[1]") and what is wrong
// there.
struct FieldViolation {
  std::string field;
  std::string description;
};
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);
// RetryInfo: present where another try may go well.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);
// ErrorInfo of domain "opmill", which every refusal of a server carries. Without it the failure
// came from gRPC or from this side.
std::optional<std::string> ReasonOf(const absl::Status& status);

// The sentence, and the fields it speaks of in front of it, for people.
std::string Describe(const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_CLIENT_ERROR_H_
