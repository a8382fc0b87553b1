#include "server/api/service_parts.h"

#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

class RefusedCall final : public RawReactor {
 public:
  explicit RefusedCall(const absl::Status& why) { Finish(ToGrpcStatus(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

absl::Status BeginRaw(absl::string_view rpc, const ServiceParts& parts,
                      grpc::CallbackServerContext& context, RequestOrigin& origin) {
  if (context.IsCancelled()) {  // also true if the headers arrived incompletely
    origin = {.rpc = rpc, .peer = context.peer()};
    return CallerIsGone(context);
  }
  origin = BeginCall(rpc, context, parts.access, parts.connections);
  return CheckMetadata(context);
}

RawReactor* Refuse(const ServiceParts& parts, const RequestOrigin& origin,
                   const absl::Status& why) {
  parts.executor.Refuse(origin, nullptr, why);
  return new RefusedCall(why);
}

void LogAnswer(const ServiceParts& parts, const RequestOrigin& origin, const absl::Status& status) {
  if (!status.ok()) {
    parts.executor.Refuse(origin, nullptr, status);
    return;
  }
  parts.executor.Answered(origin);
  LogLine line(LogLevel::kInfo, "answer");
  origin.AddTo(line);
  line.Add(status);
}

grpc::ServerUnaryReactor* Answer(const ServiceParts& parts, const RequestOrigin& origin,
                                 grpc::CallbackServerContext& context, const absl::Status& status) {
  LogAnswer(parts, origin, status);
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace opmill
