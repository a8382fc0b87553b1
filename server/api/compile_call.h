// One CompileOperator call.
#ifndef OPMILL_SERVER_API_COMPILE_CALL_H_
#define OPMILL_SERVER_API_COMPILE_CALL_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "server/api/program_request.h"
#include "server/api/unary_call.h"

namespace opmill {

// A compilation that has started runs to its end, and a draining server waits for it; what is still
// queued is dropped if its caller is gone.
class CompileCall final : public UnaryCall {
 public:
  static CompileCall* Start(const ServiceParts& parts, grpc::CallbackServerContext& context,
                            RequestOrigin origin, const grpc::ByteBuffer& request,
                            grpc::ByteBuffer& response);

  void OnCancel() override { Abort(absl::CancelledError("The caller cancelled the call.")); }
  void Abort(const absl::Status& why) override;

 private:
  CompileCall(const ServiceParts& parts, RequestOrigin origin, absl::Time deadline,
              grpc::ByteBuffer& response);
  void Begin(const grpc::ByteBuffer& request);
  absl::Status Decode(const grpc::ByteBuffer& request);
  void Compile();
  void Compiled(const absl::StatusOr<CachedOperator>& found);
  void Refuse(const absl::Status& why);

  grpc::ByteBuffer& response_;
  ProgramRequest wanted_;
  ExecutionRequest request_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_COMPILE_CALL_H_
