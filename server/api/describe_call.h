// One DescribeModel call.
#ifndef OPMILL_SERVER_API_DESCRIBE_CALL_H_
#define OPMILL_SERVER_API_DESCRIBE_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/message_call.h"
#include "server/api/model_finder.h"

namespace opmill {

class DescribeCall final : public MessageCall {
 public:
  DescribeCall(grpc::CallbackServerContext& context, RequestOrigin origin,
               const ServiceParts& parts)
      : MessageCall(context, std::move(origin), parts), finder_(parts.models, "") {}

 private:
  absl::string_view message_type() const override { return "DescribeModelRequest"; }
  void Receive(grpc::ByteBuffer& message) override;
  void Cancel(const absl::Status& why) override { finder_.Cancel(why); }
  absl::Status Find(grpc::ByteBuffer& message);
  void Found(const absl::Status& status);

  ModelFinder finder_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_DESCRIBE_CALL_H_
