#include "server/operator_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/call_context.h"
#include "server/encode_duration.h"
#include "server/execute_call.h"
#include "server/execute_stream_call.h"
#include "server/grpc_status.h"
#include "server/request_decoder.h"
#include "server/server_info.h"

namespace opmill {
namespace {

// A stream that is refused before it has begun.
class RefusedStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& why) { Finish(ToGrpcStatus(why)); }
  void OnDone() override { delete this; }
};

// A compilation cannot be cut short; a draining server waits for it.
class CompileCall final : public OpenCalls::Call {
 public:
  explicit CompileCall(OpenCalls& open_calls) : open_calls_(open_calls) { open_calls_.Add(*this); }
  ~CompileCall() override { open_calls_.Remove(*this); }
  void Abort(const absl::Status&) override {}

 private:
  OpenCalls& open_calls_;
};

void EncodeCompiled(const OperatorDesc& desc, const CachedOperator& found,
                    v1::CompileOperatorResponse& to) {
  const OperatorPlan& plan = found.compiled->plan();
  to.set_key(OperatorKey(desc));
  for (const TensorDesc& output : OutputsOf(desc)) {
    *to.add_outputs() = EncodeTensor(output);
    to.add_output_bytes(SpannedBytes(output));
  }
  to.set_input_bytes(SpannedBytes(InputOf(desc)));
  to.set_scratch_bytes(plan.scratch_bytes);
  to.set_was_cached(found.was_cached);
  EncodeDuration(found.duration, *to.mutable_compile_duration());
}

}  // namespace

grpc::ServerUnaryReactor* OperatorService::GetServerInfo(grpc::CallbackServerContext* context,
                                                         const v1::GetServerInfoRequest*,
                                                         v1::GetServerInfoResponse* response) {
  EncodeServerInfo(parts_.device, parts_.limits, *response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* OperatorService::CompileOperator(
    grpc::CallbackServerContext* context, const v1::CompileOperatorRequest* request,
    v1::CompileOperatorResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const RequestOrigin origin{.rpc = "CompileOperator", .peer = context->peer()};
  absl::StatusOr<OperatorDesc> desc = DecodeRequest(*request);
  if (!desc.ok()) {
    parts_.executor.Refuse(origin, nullptr, desc.status());
    reactor->Finish(ToGrpcStatus(desc.status()));
    return reactor;
  }
  parts_.executor.Compile(*desc, DeadlineOf(*context),
                          [this, reactor, response, origin, desc = *desc,
                           call = std::make_shared<CompileCall>(parts_.open_calls)](
                              const absl::StatusOr<CachedOperator>& found) {
                            if (found.ok()) {
                              EncodeCompiled(desc, *found, *response);
                            } else {
                              parts_.executor.Refuse(origin, &desc, found.status());
                            }
                            reactor->Finish(ToGrpcStatus(found.status()));
                          });
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* OperatorService::Execute(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return new ExecuteCall(*context, *request, parts_.executor, parts_.open_calls,
                         parts_.limits.max_response_chunk_bytes);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* OperatorService::ExecuteStream(
    grpc::CallbackServerContext* context) {
  const RequestOrigin origin{.rpc = "ExecuteStream", .peer = context->peer()};
  if (parts_.open_calls.streams() >= parts_.limits.max_streams) {
    const absl::Status full = WithRetryDelay(
        absl::ResourceExhaustedError(absl::StrCat("The server has ", parts_.limits.max_streams,
                                                  " ExecuteStream calls (max_streams) open.")),
        absl::Seconds(1));
    parts_.executor.Refuse(origin, nullptr, full);
    return new RefusedStream(full);
  }
  return ExecuteStreamCall::Start(*context, parts_.executor, parts_.open_calls,
                                  parts_.executor.timer(),
                                  {.max_chunk_bytes = parts_.limits.max_response_chunk_bytes,
                                   .max_executions = parts_.limits.max_executions_per_stream});
}

grpc::ServerUnaryReactor* OperatorService::GetStatistics(grpc::CallbackServerContext* context,
                                                         const v1::GetStatisticsRequest*,
                                                         v1::GetStatisticsResponse* response) {
  EncodeStatistics(parts_.statistics, *response);
  EncodeCacheStatistics(parts_.cache.statistics(), *response->mutable_cache());
  EncodeDeviceCounters(parts_.device.counters(), *response->mutable_device());
  v1::InFlight& in_flight = *response->mutable_in_flight();
  in_flight.set_executions(parts_.executor.open_executions());
  in_flight.set_bytes(parts_.executor.memory().used());
  in_flight.set_streams(parts_.open_calls.streams());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace opmill
