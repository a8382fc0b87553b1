// The RPCs of inference.GRPCInferenceService: the Open Inference Protocol and Triton's extensions.
#ifndef OPMILL_SERVER_OIP_INFERENCE_SERVICE_H_
#define OPMILL_SERVER_OIP_INFERENCE_SERVICE_H_

#include <functional>
#include <memory>

#include "grpcpp/grpcpp.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/api/raw_methods.h"
#include "server/api/service_parts.h"
#include "server/models/model_repository.h"
#include "server/models/model_table.h"

namespace opmill::oip {

class InferenceService final : public RawMethods<inference::GRPCInferenceService,
                                                 inference::GRPCInferenceService::CallbackService> {
 public:
  // `is_ready` says whether the server accepts requests. All arguments must outlive the service.
  InferenceService(const ServiceParts& parts, const ModelTable& models, ModelRepository& repository,
                   std::function<bool()> is_ready);

#define OPMILL_OIP_UNARY(Method)                                              \
  grpc::ServerUnaryReactor* Method(grpc::CallbackServerContext* context,      \
                                   const inference::Method##Request* request, \
                                   inference::Method##Response* response) override
  OPMILL_OIP_UNARY(ServerLive);
  OPMILL_OIP_UNARY(ServerReady);
  OPMILL_OIP_UNARY(ModelReady);
  OPMILL_OIP_UNARY(ServerMetadata);
  OPMILL_OIP_UNARY(ModelMetadata);
  OPMILL_OIP_UNARY(ModelConfig);
  OPMILL_OIP_UNARY(ModelStatistics);
  OPMILL_OIP_UNARY(RepositoryIndex);
  OPMILL_OIP_UNARY(SystemSharedMemoryStatus);
  OPMILL_OIP_UNARY(SystemSharedMemoryRegister);
  OPMILL_OIP_UNARY(SystemSharedMemoryUnregister);
  OPMILL_OIP_UNARY(CudaSharedMemoryStatus);
  OPMILL_OIP_UNARY(CudaSharedMemoryRegister);
  OPMILL_OIP_UNARY(CudaSharedMemoryUnregister);
  OPMILL_OIP_UNARY(TraceSetting);
  OPMILL_OIP_UNARY(LogSettings);
#undef OPMILL_OIP_UNARY

 private:
  // Begin, if the caller matters, and Answer are called once for each unary call. Answer logs it.
  RequestOrigin Begin(absl::string_view rpc, grpc::CallbackServerContext& context) const;
  grpc::ServerUnaryReactor* Answer(const RequestOrigin& origin,
                                   grpc::CallbackServerContext& context,
                                   const absl::Status& status) const;
  grpc::ServerUnaryReactor* Answer(absl::string_view rpc, grpc::CallbackServerContext& context,
                                   const absl::Status& status) const;
  RawReactor* BeginStreamInfer(grpc::CallbackServerContext* context);

  const ServiceParts parts_;
  const ModelTable& models_;
  const std::function<bool()> is_ready_;
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_INFERENCE_SERVICE_H_
