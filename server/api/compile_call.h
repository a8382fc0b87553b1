// One CompileOperator call.
#ifndef OPMILL_SERVER_API_COMPILE_CALL_H_
#define OPMILL_SERVER_API_COMPILE_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "server/api/message_call.h"
#include "server/api/program_request.h"

namespace opmill {

// A compilation that has started runs to its end, and a draining server waits for it; what is still
// queued is dropped if its caller is gone.
class CompileCall final : public MessageCall {
 public:
  CompileCall(grpc::CallbackServerContext& context, RequestOrigin origin, const ServiceParts& parts)
      : MessageCall(context, std::move(origin), parts), wanted_(parts.models) {}

 private:
  absl::string_view message_type() const override { return "CompileOperatorRequest"; }
  void Receive(grpc::ByteBuffer& message) override;
  void Cancel(const absl::Status& why) override { wanted_.Cancel(why); }
  absl::Status Decode(grpc::ByteBuffer& message);
  void Compile();
  void Compiled(const absl::StatusOr<CachedOperator>& found);
  void RefuseRequest(const absl::Status& why);

  ProgramRequest wanted_;
  ExecutionRequest request_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_COMPILE_CALL_H_
