#include "server/api/operator_service.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "proto/duration.h"
#include "server/api/execute_call.h"
#include "server/api/execute_stream_call.h"
#include "server/api/grpc_status.h"
#include "server/api/request_decoder.h"
#include "server/api/requested_program.h"
#include "server/api/server_info.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

// A CompileOperator call. A compilation that has started runs to its end, and a draining server
// waits for it; one that is still queued is dropped if its caller is gone. Deletes itself when the
// call is done.
class CompileCall final : public grpc::ServerUnaryReactor, public OpenCalls::Call {
 public:
  static CompileCall* Start(OpenCalls& open_calls) {
    auto* const call = new CompileCall(open_calls);
    open_calls.Add(*call);
    return call;
  }

  const std::shared_ptr<std::atomic<bool>>& cancelled() const { return cancelled_; }

  void OnCancel() override { *cancelled_ = true; }
  void Abort(const absl::Status&) override { *cancelled_ = true; }
  void OnDone() override {
    open_calls_.Remove(*this);
    delete this;
  }

 private:
  explicit CompileCall(OpenCalls& open_calls) : open_calls_(open_calls) {}

  OpenCalls& open_calls_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

void EncodeCompiled(const ExecutionRequest& request, const CachedOperator& found,
                    v1::CompileOperatorResponse& to) {
  const std::vector<TensorDesc> outputs = request.OutputTensors();
  for (const TensorDesc& output : outputs) to.add_output_bytes(SpannedBytes(output));
  if (request.model == nullptr) {
    to.set_key(OperatorKey(*request.desc()));
    for (const TensorDesc& output : outputs) EncodeTensor(output, *to.add_outputs());
  } else {
    EncodeOutputs(*request.model, outputs, to);
  }
  uint64_t input_bytes = 0;
  const std::vector<TensorDesc>& inputs = InputsOf(request);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t place = ProgramInputOf(request, static_cast<uint32_t>(i));
    const bool is_sent = place != RequestedModel::kInProgram;
    to.add_each_input_bytes(is_sent ? SpannedBytes(inputs[i]) : 0);
    input_bytes += is_sent ? SpannedBytes(inputs[i]) : 0;
  }
  to.set_input_bytes(input_bytes);
  to.set_scratch_bytes(found.compiled->cost().scratch_bytes);
  to.set_was_cached(found.was_cached);
  EncodeDuration(found.duration, *to.mutable_compile_duration());
}

}  // namespace

OperatorService::OperatorService(const ServiceParts& parts, const ModelTable& models)
    : parts_(parts), models_(models) {
  const int execute = v1::ExecuteRequest::descriptor()
                          ->file()
                          ->FindServiceByName("OperatorService")
                          ->FindMethodByName("Execute")
                          ->index();
  MarkMethodStreamed(execute, nullptr);
  MarkMethodRawCallback(
      execute,
      new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
          [this](grpc::CallbackServerContext* context) { return ExecuteFromItsHeaders(context); }));
}

grpc::ServerUnaryReactor* OperatorService::GetServerInfo(grpc::CallbackServerContext* context,
                                                         const v1::GetServerInfoRequest*,
                                                         v1::GetServerInfoResponse* response) {
  EncodeServerInfo(parts_.device, parts_.limits, *response);
  response->set_shared_memory(parts_.shared_memory.is_allowed());
  return Answer(parts_, Begin("GetServerInfo", *context), *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* OperatorService::CompileOperator(
    grpc::CallbackServerContext* context, const v1::CompileOperatorRequest* request,
    v1::CompileOperatorResponse* response) {
  const RequestOrigin origin = Begin("CompileOperator", *context);
  auto* call = CompileCall::Start(parts_.open_calls);
  const auto refuse = [this, origin, call](const OperatorDesc* desc, const absl::Status& why) {
    parts_.executor.Refuse(origin, desc, why);
    call->Finish(ToGrpcStatus(why));
    return call;
  };
  const absl::Status fits = CheckMetadata(*context);
  if (!fits.ok()) return refuse(nullptr, fits);
  ExecutionRequest wanted;
  const absl::Status decoded = DecodeProgram(*request, models_, wanted);
  if (!decoded.ok()) return refuse(nullptr, decoded);
  const absl::Status posted = parts_.executor.Compile(
      wanted.op.has_value() ? ProgramOf(*wanted.op) : *wanted.program, DeadlineOf(*context),
      call->cancelled(),
      [refuse, call, response, origin, wanted](const absl::StatusOr<CachedOperator>& found) {
        if (!found.ok()) {
          refuse(wanted.desc(), found.status());
          return;
        }
        EncodeCompiled(wanted, *found, *response);
        LogLine line(LogLevel::kInfo, "compile");
        origin.AddTo(line);
        line.Add("operator", wanted.description())
            .Add(absl::OkStatus())
            .Add("compile", found->duration);
        call->Finish(grpc::Status::OK);
      });
  return posted.ok() ? call : refuse(wanted.desc(), posted);
}

RawReactor* OperatorService::ExecuteFromItsHeaders(grpc::CallbackServerContext* context) {
  RequestOrigin origin;
  const absl::Status begun = BeginRaw("Execute", parts_, *context, origin);
  if (!begun.ok()) return Refuse(parts_, origin, begun);
  return SingleExecutionCall::Start<ExecuteCall>(*context, std::move(origin), parts_.executor,
                                                 parts_.open_calls, models_, parts_.shared_memory,
                                                 parts_.limits.max_response_chunk_bytes);
}

RawReactor* OperatorService::ExecuteStream(grpc::CallbackServerContext* context) {
  RequestOrigin origin;
  absl::Status begun = BeginRaw("ExecuteStream", parts_, *context, origin);
  if (begun.ok()) begun = parts_.executor.BeginStream(origin);
  if (!begun.ok()) return Refuse(parts_, origin, begun);
  return ExecuteStreamCall::Start(*context, std::move(origin), parts_.executor, parts_.open_calls,
                                  models_, parts_.executor.timer(),
                                  {.max_chunk_bytes = parts_.limits.max_response_chunk_bytes,
                                   .max_executions = parts_.limits.max_executions_per_stream});
}

grpc::ServerUnaryReactor* OperatorService::GetStatistics(grpc::CallbackServerContext* context,
                                                         const v1::GetStatisticsRequest*,
                                                         v1::GetStatisticsResponse* response) {
  EncodeStatistics(parts_.statistics, *response);
  EncodeModelStatistics(models_, *response);
  EncodeCacheStatistics(parts_.cache.statistics(), *response->mutable_cache());
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
                EncodeModels(models_, request->name(), *response));
}

}  // namespace opmill
