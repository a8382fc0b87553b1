// What the services share: the parts of the server that their calls use, and how a call begins.
#ifndef OPMILL_SERVER_API_SERVICE_PARTS_H_
#define OPMILL_SERVER_API_SERVICE_PARTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "server/access/access.h"
#include "server/api/model_finder.h"
#include "server/config/options.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/network/connections.h"
#include "server/observe/statistics.h"
#include "server/shared_memory/shared_memory.h"
#include "server/tensors/tensor_store.h"

namespace opmill {

using RawReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// All parts must outlive the services.
struct ServiceParts {
  Device& device;
  OperatorCache& cache;
  Executor& executor;
  Statistics& statistics;
  OpenCalls& open_calls;
  const Access& access;
  Connections& connections;
  SharedMemory& shared_memory;
  TensorStore& tensors;
  const Limits& limits;
  ModelSources models;
};

// Sets `origin` even if it refuses the call.
absl::Status BeginRaw(absl::string_view rpc, const ServiceParts& parts,
                      grpc::CallbackServerContext& context, RequestOrigin& origin);

// A call that ends before its first message is read.
RawReactor* Refuse(const ServiceParts& parts, const RequestOrigin& origin, const absl::Status& why);

// Logs that a unary call ends; a refusal is also counted.
void LogAnswer(const ServiceParts& parts, const RequestOrigin& origin, const absl::Status& status);

// Ends a unary call whose response is complete, or which is refused, and logs it.
grpc::ServerUnaryReactor* Answer(const ServiceParts& parts, const RequestOrigin& origin,
                                 grpc::CallbackServerContext& context, const absl::Status& status);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_SERVICE_PARTS_H_
