// absl::Status -> grpc::Status with google.rpc details, and nowhere else.
#ifndef OPMILL_SERVER_API_GRPC_STATUS_H_
#define OPMILL_SERVER_API_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace opmill {

// Puts a message's path in front of the field that the status names, if it names one:
// "axes[1]" under "operator.reduce" is "operator.reduce.axes[1]".
absl::Status UnderPath(absl::string_view path, absl::Status status);

google::rpc::Status ToRpcStatus(const absl::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_GRPC_STATUS_H_
