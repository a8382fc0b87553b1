// One ModelInfer call.
#ifndef OPMILL_SERVER_OIP_MODEL_INFER_CALL_H_
#define OPMILL_SERVER_OIP_MODEL_INFER_CALL_H_

#include <functional>
#include <memory>

#include "server/api/single_execution_call.h"
#include "server/oip/infer_request.h"

namespace opmill::oip {

class ModelInferCall final : public SingleExecutionCall {
 public:
  using SingleExecutionCall::SingleExecutionCall;

 private:
  absl::string_view message_type() const override { return "ModelInferRequest"; }
  absl::Status Decode(grpc::ByteBuffer& message, ExecutionRequest& begin) override {
    return request_.Decode(message, parts().models.repository, places_, begin);
  }
  void MakeProgram(ExecutionRequest& begin,
                   const std::function<void(const absl::Status&)>& done) override {
    request_.MakeProgram(parts().models.programs, places_, parts().executor, begin, done);
  }
  void CancelProgram(const absl::Status& why) override {
    request_.CancelProgram(parts().models.programs, why);
  }
  void SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) override {
    request_.SendInputs(executor, execution);
  }
  void Prepare(Executor& executor, const std::shared_ptr<Execution>& execution,
               const std::function<void()>& respond) override {
    request_.WriteShared(executor, execution, respond);
  }
  Written WriteResponse(const std::shared_ptr<Execution>& execution,
                        grpc::ByteBuffer& message) override {
    return request_.Encode(execution, 0, message) ? Written::kLast : Written::kError;
  }
  void Failed() override { request_.CountFailure(); }

  const TensorPlaces places_ = {parts().shared_memory, parts().tensors};
  InferRequest request_;
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_MODEL_INFER_CALL_H_
