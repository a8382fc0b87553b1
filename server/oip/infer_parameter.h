// The values of parameters of requests and tensors.
#ifndef OPMILL_SERVER_OIP_INFER_PARAMETER_H_
#define OPMILL_SERVER_OIP_INFER_PARAMETER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"

namespace opmill::oip {

// The value as text: "0,2", "5", "true".
std::string TextOf(const inference::InferParameter& value);
// `path` is that of the parameter.
absl::StatusOr<uint64_t> UnsignedFrom(const inference::InferParameter& value,
                                      const std::string& path);

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_INFER_PARAMETER_H_
