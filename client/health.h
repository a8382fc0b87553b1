// grpc.health.v1.Health/Check.
#ifndef OPMILL_CLIENT_HEALTH_H_
#define OPMILL_CLIENT_HEALTH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"

namespace opmill {

// "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" or "UNKNOWN".
absl::StatusOr<std::string> CheckHealth(grpc::GenericStub& stub, absl::string_view service,
                                        absl::Duration timeout, const std::string& token);

}  // namespace opmill

#endif  // OPMILL_CLIENT_HEALTH_H_
