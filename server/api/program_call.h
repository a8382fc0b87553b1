// A call with one request message for a program, which a worker makes if necessary.
#ifndef OPMILL_SERVER_API_PROGRAM_CALL_H_
#define OPMILL_SERVER_API_PROGRAM_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "server/api/message_call.h"
#include "server/api/program_request.h"

namespace opmill {

class ProgramCall : public MessageCall {
 public:
  ProgramCall(grpc::CallbackServerContext& context, RequestOrigin origin, const ServiceParts& parts)
      : MessageCall(context, std::move(origin), parts), wanted_(parts.models) {}

 protected:
  // Decodes the message, whose bytes it takes, with `wanted_` into `request_`.
  virtual absl::Status Decode(grpc::ByteBuffer& message) = 0;
  // The request has its program.
  virtual void HasProgram() = 0;
  // After Compile, unless it has failed.
  virtual void Compiled(const CachedOperator& found) = 0;
  virtual void RefuseRequest(const absl::Status& why) {
    Refuse(request_.origin, request_.desc(), why);
  }
  void Cancel(const absl::Status& why) override { wanted_.Cancel(why); }

  // A draining server waits for it; it is dropped, or stopped, if its caller is gone.
  void Compile();

  ProgramRequest wanted_;
  ExecutionRequest request_;

 private:
  void Receive(grpc::ByteBuffer& message) final;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_PROGRAM_CALL_H_
