#include "server/api/operator_service.h"

#include <utility>

#include "server/api/compile_call.h"
#include "server/api/describe_call.h"
#include "server/api/execute_call.h"
#include "server/api/execute_stream_call.h"
#include "server/api/explain_call.h"
#include "server/api/model_messages.h"
#include "server/api/resident_tensors.h"
#include "server/api/server_info.h"

namespace opmill {

OperatorService::OperatorService(const ServiceParts& parts) : parts_(parts) {
  RegisterCall<ExecuteCall>("Execute", parts_);
  RegisterCall<CompileCall>("CompileOperator", parts_);
  RegisterCall<DescribeCall>("DescribeModel", parts_);
  RegisterCall<ExplainCall>("ExplainModel", parts_);
  RegisterRaw("ExecuteStream", [this](auto* context) { return BeginExecuteStream(context); });
}

grpc::ServerUnaryReactor* OperatorService::GetServerInfo(grpc::CallbackServerContext* context,
                                                         const v1::GetServerInfoRequest*,
                                                         v1::GetServerInfoResponse* response) {
  EncodeServerInfo(parts_.device, parts_.limits, *response);
  response->set_shared_memory(parts_.shared_memory.is_allowed());
  return Answer(parts_, Begin("GetServerInfo", *context), *context, absl::OkStatus());
}

RawReactor* OperatorService::BeginExecuteStream(grpc::CallbackServerContext* context) {
  RequestOrigin origin;
  absl::Status begun = BeginRaw("ExecuteStream", parts_, *context, origin);
  if (begun.ok()) begun = parts_.executor.BeginStream(origin);
  if (!begun.ok()) return Refuse(parts_, origin, begun);
  return ExecuteStreamCall::Start(*context, std::move(origin), parts_.executor, parts_.open_calls,
                                  parts_.models, parts_.tensors, parts_.executor.timer(),
                                  {.max_chunk_bytes = parts_.limits.max_response_chunk_bytes,
                                   .max_executions = parts_.limits.max_executions_per_stream});
}

grpc::ServerUnaryReactor* OperatorService::GetStatistics(grpc::CallbackServerContext* context,
                                                         const v1::GetStatisticsRequest*,
                                                         v1::GetStatisticsResponse* response) {
  EncodeStatistics(parts_.statistics, *response);
  EncodeModelStatistics(parts_.models.repository, parts_.models.inline_models, *response);
  response->set_model_bytes(parts_.models.memory.used());
  EncodeCacheStatistics(parts_.cache.statistics(), *response->mutable_cache());
  EncodeTotals(parts_.tensors.totals(), *response->mutable_resident());
  EncodeDeviceCounters(parts_.device.counters(), *response->mutable_device());
  v1::InFlight& in_flight = *response->mutable_in_flight();
  in_flight.set_executions(parts_.executor.open_executions());
  in_flight.set_bytes(parts_.executor.memory().used());
  in_flight.set_streams(parts_.open_calls.streams());
  return Answer(parts_, Begin("GetStatistics", *context), *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* OperatorService::ListModels(grpc::CallbackServerContext* context,
                                                      const v1::ListModelsRequest* request,
                                                      v1::ListModelsResponse* response) {
  return Answer(parts_, Begin("ListModels", *context), *context,
                EncodeModels(parts_.models.repository, request->name(), *response));
}

grpc::ServerUnaryReactor* OperatorService::ListTensors(grpc::CallbackServerContext* context,
                                                       const v1::ListTensorsRequest* request,
                                                       v1::ListTensorsResponse* response) {
  const RequestOrigin origin = Begin("ListTensors", *context);
  return Answer(parts_, origin, *context,
                EncodeTensors(parts_.tensors, origin.caller, request->name(), *response));
}

grpc::ServerUnaryReactor* OperatorService::DeleteTensor(grpc::CallbackServerContext* context,
                                                        const v1::DeleteTensorRequest* request,
                                                        v1::DeleteTensorResponse*) {
  const RequestOrigin origin = Begin("DeleteTensor", *context);
  const std::optional<uint64_t> generation =
      request->has_if_generation() ? std::optional(request->if_generation()) : std::nullopt;
  return Answer(parts_, origin, *context,
                parts_.tensors.Delete(origin.caller, request->name(), generation));
}

}  // namespace opmill
