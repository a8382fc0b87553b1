// Converts absl::Status to grpc::Status with google.rpc details. This is the only place that does;
// server/status/from_grpc.h has the inverse.
#ifndef OPMILL_SERVER_API_GRPC_STATUS_H_
#define OPMILL_SERVER_API_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace opmill {

// Prefixes the field that the status names, if any, with the path of its message: "axes[1]" under
// "operator.reduce" becomes "operator.reduce.axes[1]".
absl::Status UnderPath(absl::string_view path, absl::Status status);

google::rpc::Status ToRpcStatus(const absl::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_GRPC_STATUS_H_
