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

void DescribeCall::Receive(grpc::ByteBuffer& message) {
  const absl::Status found = CatchOutOfMemory([&] { return Find(message); });
  if (!found.ok() || finder_.model() != nullptr) {
    Found(found);
  } else {
    finder_.Read(parts().executor, origin(), DeadlineOf(context()),
                 [this](const absl::Status& read) { Found(read); });
  }
}

absl::Status DescribeCall::Find(grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const SplitMessage split, SplitMessage::Take(message, PayloadKind::kInputs));
  StackMessage<v1::DescribeModelRequest> header;
  if (!header->ParseFromString(split.header())) return NotAProtobuf(message_type());
  return finder_.Find(header->model(), split.model_file());
}

void DescribeCall::Found(const absl::Status& status) {
  if (!status.ok()) {
    Refuse(origin(), nullptr, status);
    return;
  }
  v1::DescribeModelResponse response;
  EncodeModel(*finder_.model(), *response.mutable_model());
  LogAnswer(parts(), origin(), status);
  Answer(JoinChunks(response, {}));
}

}  // namespace opmill
