#include "server/api/describe_call.h"

#include <utility>

#include "kernels/base/errors.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/model_messages.h"
#include "server/api/out_of_memory.h"

namespace opmill {

DescribeCall* DescribeCall::Start(const ServiceParts& parts, grpc::CallbackServerContext& context,
                                  RequestOrigin origin, const grpc::ByteBuffer& request,
                                  grpc::ByteBuffer& response) {
  auto* const call = new DescribeCall(parts, std::move(origin), DeadlineOf(context), response);
  call->Open();
  if (const absl::Status fits = CheckMetadata(context); fits.ok()) {
    call->Begin(request);
  } else {
    call->Answer(fits);
  }
  return call;
}

DescribeCall::DescribeCall(const ServiceParts& parts, RequestOrigin origin, absl::Time deadline,
                           grpc::ByteBuffer& response)
    : UnaryCall(parts),
      response_(response),
      origin_(std::move(origin)),
      deadline_(deadline),
      finder_(parts.models, "") {}

void DescribeCall::Begin(const grpc::ByteBuffer& request) {
  const absl::Status found = CatchOutOfMemory([&] { return Find(request); });
  if (!found.ok() || finder_.model() != nullptr) {
    Answer(found);
  } else {
    finder_.Read(parts_.executor, origin_, deadline_,
                 [this](const absl::Status& read) { Answer(read); });
  }
}

absl::Status DescribeCall::Find(const grpc::ByteBuffer& request) {
  ASSIGN_OR_RETURN(const SplitMessage message, SplitMessage::Split(request, PayloadKind::kInputs));
  StackMessage<v1::DescribeModelRequest> header;
  if (!header->ParseFromString(message.header())) return NotAProtobuf("DescribeModelRequest");
  return finder_.Find(header->model(), message.model_file());
}

void DescribeCall::Answer(const absl::Status& status) {
  if (status.ok()) {
    v1::DescribeModelResponse response;
    EncodeModel(*finder_.model(), *response.mutable_model());
    response_ = JoinChunks(response, {});
  }
  End(origin_, status);
}

}  // namespace opmill
