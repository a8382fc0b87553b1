#include "server/api/compile_call.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "opmill/v1/service.pb.h"
#include "proto/duration.h"
#include "proto/payload.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/model_messages.h"
#include "server/api/request_decoder.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

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

absl::Status CompileCall::Decode(grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const SplitMessage split, SplitMessage::Take(message, PayloadKind::kInputs));
  StackMessage<v1::CompileOperatorRequest> header;
  if (!header->ParseFromString(split.header())) return NotAProtobuf(message_type());
  return wanted_.Decode(*header, split.model_file(), request_);
}

void CompileCall::Compiled(const CachedOperator& found) {
  v1::CompileOperatorResponse response;
  EncodeCompiled(request_, found, response);
  parts().executor.Answered(request_.origin);
  {
    LogLine line(LogLevel::kInfo, "compile");
    request_.origin.AddTo(line);
    line.Add("operator", request_.description())
        .Add(absl::OkStatus())
        .Add("compile", found.duration);
  }
  Answer(JoinChunks(response, {}));
}

}  // namespace opmill
