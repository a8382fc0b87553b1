// Converts grpc::Status to absl::Status; server/api/grpc_status.h has the inverse.
#ifndef OPMILL_SERVER_STATUS_FROM_GRPC_H_
#define OPMILL_SERVER_STATUS_FROM_GRPC_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace opmill {

// Code and message, without the details.
inline absl::Status ToAbslStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace opmill

#endif  // OPMILL_SERVER_STATUS_FROM_GRPC_H_
