// The RPCs of opmill.v1.OperatorService.
#ifndef OPMILL_SERVER_API_OPERATOR_SERVICE_H_
#define OPMILL_SERVER_API_OPERATOR_SERVICE_H_

#include "grpcpp/grpcpp.h"
#include "opmill/v1/service.grpc.pb.h"
#include "server/api/call_context.h"
#include "server/api/raw_methods.h"
#include "server/api/service_parts.h"

namespace opmill {

// Raw methods get their messages as bytes, so tensor bytes and files of models never pass through
// protobuf.
using OperatorServiceBase =
    RawMethods<v1::OperatorService,
               v1::OperatorService::WithCallbackMethod_GetServerInfo<
                   v1::OperatorService::WithCallbackMethod_GetStatistics<
                       v1::OperatorService::WithCallbackMethod_ListModels<
                           v1::OperatorService::WithCallbackMethod_ListTensors<
                               v1::OperatorService::WithCallbackMethod_DeleteTensor<
                                   v1::OperatorService::Service>>>>>>;

class OperatorService final : public OperatorServiceBase {
 public:
  // All arguments must outlive the service.
  explicit OperatorService(const ServiceParts& parts);

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override;
  grpc::ServerUnaryReactor* GetStatistics(grpc::CallbackServerContext* context,
                                          const v1::GetStatisticsRequest* request,
                                          v1::GetStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* ListTensors(grpc::CallbackServerContext* context,
                                        const v1::ListTensorsRequest* request,
                                        v1::ListTensorsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteTensor(grpc::CallbackServerContext* context,
                                         const v1::DeleteTensorRequest* request,
                                         v1::DeleteTensorResponse* response) override;

 private:
  // Identifies the caller, and returns the caller's traceparent in the initial metadata.
  RequestOrigin Begin(absl::string_view rpc, grpc::CallbackServerContext& context) const {
    return BeginCall(rpc, context, parts_.access, parts_.connections);
  }
  RawReactor* BeginExecuteStream(grpc::CallbackServerContext* context);

  const ServiceParts parts_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_OPERATOR_SERVICE_H_
