// The parameters of a tensor by which it is in shared memory.
#ifndef OPMILL_SERVER_OIP_SHARED_PARAMETERS_H_
#define OPMILL_SERVER_OIP_SHARED_PARAMETERS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "inference/grpc_service.pb.h"
#include "server/execution/execution.h"
#include "server/shared_memory/shared_memory.h"
#include "server/shared_memory/shared_tensors.h"
#include "server/tensors/tensor_store.h"

namespace opmill::oip {

// Where tensors may be, apart from messages. Refers to both.
struct TensorPlaces {
  const SharedMemory& memory;
  TensorStore& tensors;
};

// What is there for a caller: regions that it has registered, and tensors that stay. Refers to all.
struct CallerPlaces {
  const TensorPlaces& places;
  const RequestOrigin& origin;
};

// The range that the parameters name; nothing if they name none. Refuses unknown parameters.
// `path` is that of the tensor in the request, `index` that among the tensors of the operator.
absl::StatusOr<std::optional<SharedTensor>> OpenShared(
    const google::protobuf::Map<std::string, inference::InferParameter>& parameters,
    const std::string& path, size_t index, const CallerPlaces& caller);

// The tensor that stays on the server and that the parameter `tensor` names; null if there is no
// such parameter, which stands alone.
absl::StatusOr<std::shared_ptr<const ResidentTensor>> FindResident(
    const google::protobuf::Map<std::string, inference::InferParameter>& parameters,
    const std::string& path, const TensorDesc& input, const CallerPlaces& caller);

// The path of the parameter with the size of the range.
std::string ByteSizePath(absl::string_view path);

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_SHARED_PARAMETERS_H_
