// One DescribeModel call.
#ifndef OPMILL_SERVER_API_DESCRIBE_CALL_H_
#define OPMILL_SERVER_API_DESCRIBE_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/model_finder.h"
#include "server/api/unary_call.h"

namespace opmill {

class DescribeCall final : public UnaryCall {
 public:
  static DescribeCall* Start(const ServiceParts& parts, grpc::CallbackServerContext& context,
                             RequestOrigin origin, const grpc::ByteBuffer& request,
                             grpc::ByteBuffer& response);

  void OnCancel() override { Abort(absl::CancelledError("The caller cancelled the call.")); }
  void Abort(const absl::Status& why) override { finder_.Cancel(why); }

 private:
  DescribeCall(const ServiceParts& parts, RequestOrigin origin, absl::Time deadline,
               grpc::ByteBuffer& response);
  void Begin(const grpc::ByteBuffer& request);
  absl::Status Find(const grpc::ByteBuffer& request);
  void Answer(const absl::Status& status);

  grpc::ByteBuffer& response_;
  RequestOrigin origin_;
  const absl::Time deadline_;
  ModelFinder finder_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_DESCRIBE_CALL_H_
