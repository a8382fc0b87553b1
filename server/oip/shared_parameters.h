// The parameters of a tensor by which it is in shared memory.
#ifndef OPMILL_SERVER_OIP_SHARED_PARAMETERS_H_
#define OPMILL_SERVER_OIP_SHARED_PARAMETERS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "inference/grpc_service.pb.h"
#include "server/execution/execution.h"
#include "server/shared_memory/shared_memory.h"
#include "server/shared_memory/shared_tensors.h"

namespace opmill::oip {

// The regions that a caller has registered. Refers to both.
struct Regions {
  const SharedMemory& memory;
  const RequestOrigin& origin;
};

// The range that the parameters name; nothing if they name none. Refuses unknown parameters.
// `path` is that of the tensor in the request, `index` that among the tensors of the operator.
absl::StatusOr<std::optional<SharedTensor>> OpenShared(
    const google::protobuf::Map<std::string, inference::InferParameter>& parameters,
    const std::string& path, size_t index, const Regions& regions);

// The path of the parameter with the size of the range.
std::string ByteSizePath(absl::string_view path);

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_SHARED_PARAMETERS_H_
