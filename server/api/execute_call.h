// One Execute call.
#ifndef OPMILL_SERVER_API_EXECUTE_CALL_H_
#define OPMILL_SERVER_API_EXECUTE_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "proto/payload.h"
#include "server/api/program_request.h"
#include "server/api/resident_tensors.h"
#include "server/api/result_stream.h"
#include "server/api/single_execution_call.h"
#include "server/shared_memory/shared_tensors.h"

namespace opmill {

class ExecuteCall final : public SingleExecutionCall {
 public:
  ExecuteCall(grpc::CallbackServerContext& context, RequestOrigin origin, const ServiceParts& parts)
      : SingleExecutionCall(context, std::move(origin), parts), wanted_(parts.models) {}

 private:
  absl::string_view message_type() const override { return "ExecuteRequest"; }
  absl::Status Decode(grpc::ByteBuffer& message, ExecutionRequest& begin) override;
  void MakeProgram(ExecutionRequest& begin,
                   const std::function<void(const absl::Status&)>& done) override;
  void CancelProgram(const absl::Status& why) override { wanted_.Cancel(why); }
  // What follows from the program.
  absl::Status Complete(ExecutionRequest& begin);
  absl::Status DecodeSources(
      const google::protobuf::RepeatedPtrField<v1::SharedMemoryRange>& ranges,
      ExecutionRequest& begin);
  void SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) override;
  void Prepare(Executor& executor, const std::shared_ptr<Execution>& execution,
               const std::function<void()>& respond) override;
  Written WriteResponse(const std::shared_ptr<Execution>& execution,
                        grpc::ByteBuffer& message) override;
  void Failed() override;

  ProgramRequest wanted_;
  std::optional<SplitMessage> request_;  // until the inputs are sent
  // Of the message, until its program is known.
  google::protobuf::RepeatedPtrField<v1::SharedMemoryRange> input_ranges_;
  google::protobuf::RepeatedPtrField<v1::SharedMemoryRange> output_ranges_;
  ResidentFields resident_;
  std::vector<uint32_t> sent_inputs_;  // the program's input that each tensor of the message is
  std::shared_ptr<const RequestedModel> model_;  // null if it is an operator, or not known yet
  absl::Time arrived_;
  std::vector<SharedTensor> shared_outputs_;  // empty: the outputs are sent
  std::optional<ResultStream> results_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXECUTE_CALL_H_
