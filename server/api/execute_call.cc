#include "server/api/execute_call.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "opmill/v1/service.pb.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/request_decoder.h"

namespace opmill {
namespace {

absl::Status CheckInputs(const OperatorDesc& desc, const std::vector<IncomingChunk>& inputs) {
  if (inputs.size() != desc.inputs.size()) {
    return InvalidField("inputs",
                        absl::StrCat("inputs has ", inputs.size(), " tensors; ", OperatorName(desc),
                                     " takes ", desc.inputs.size(), "."));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t bytes = inputs[i].data.size();
    const uint64_t least = SpannedBytes(desc.inputs[i]);
    if (bytes >= least && bytes <= RequiredBytes(desc.inputs[i])) continue;
    const std::string field = absl::StrCat("inputs[", i, "]");
    return InvalidField(field, absl::StrCat(field, " has ", bytes, " bytes; ",
                                            ToString(desc.inputs[i]), " takes ", least, "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExecuteCall::Decode(const grpc::ByteBuffer& message, ExecutionRequest& begin) {
  ASSIGN_OR_RETURN(request_, SplitMessage::Split(message, PayloadKind::kInputs));
  StackMessage<v1::ExecuteRequest> header;
  if (!header->ParseFromString(request_->header())) return NotAProtobuf(message_type());
  ASSIGN_OR_RETURN(begin.desc, DecodeRequest(*header));
  return CheckInputs(begin.desc, request_->chunks());
}

void ExecuteCall::SendInputs(Executor& executor, const std::shared_ptr<Execution>& execution) {
  for (const IncomingChunk& input : request_->chunks()) {
    executor.Receive(execution, input, absl::StrCat("inputs[", input.tensor_index, "]"));
  }
  request_.reset();
}

ExecuteCall::Written ExecuteCall::WriteResponse(const std::shared_ptr<Execution>& execution,
                                                grpc::ByteBuffer& message) {
  if (!results_.has_value()) results_.emplace(execution, max_chunk_bytes_);
  StackMessage<v1::ExecuteResponse> response;
  if (!results_->Next(*response, message)) return Written::kError;
  return results_->done() ? Written::kLast : Written::kMore;
}

}  // namespace opmill
