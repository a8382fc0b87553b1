#include "server/api/explain_call.h"

#include <utility>

#include "opmill/v1/service.pb.h"
#include "proto/duration.h"
#include "proto/payload.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/explanation.h"
#include "server/api/grpc_status.h"
#include "server/api/made_up_inputs.h"
#include "server/api/out_of_memory.h"
#include "server/api/result_stream.h"

namespace opmill {

void ExplainCall::Running::Begun(Executor& executor, const std::shared_ptr<Execution>& execution) {
  absl::Status cancelled;
  {
    const absl::MutexLock lock(&mutex_);
    execution_ = execution;
    cancelled = cancelled_;
  }
  if (!cancelled.ok()) executor.Cancel(execution, cancelled);
}

void ExplainCall::Running::Cancel(Executor& executor, const absl::Status& why) {
  std::shared_ptr<Execution> execution;
  {
    const absl::MutexLock lock(&mutex_);
    cancelled_ = why;
    execution = execution_;
  }
  if (execution != nullptr) executor.Cancel(execution, why);
}

absl::Status ExplainCall::Decode(grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const SplitMessage split, SplitMessage::Take(message, PayloadKind::kInputs));
  StackMessage<v1::ExplainModelRequest> header;
  if (!header->ParseFromString(split.header())) return NotAProtobuf(message_type());
  runs_ = header->run();
  request_.priority = header->priority();
  return wanted_.DecodeModel(header->model(), split.model_file(), request_);
}

void ExplainCall::HasProgram() {
  const auto next = [this] { runs_ ? Execute() : Compile(); };
  model_ = request_.model;
  if (model_->graph == nullptr) return next();
  wanted_.Explain(parts().executor, request_, [this, next](const auto& explained) {
    if (!explained.ok()) return RefuseRequest(explained.status());
    explained_ = *explained;
    next();
  });
}

void ExplainCall::Compiled(const CachedOperator& found) {
  profile_->report = found.compiled->Report();
  v1::ExplainModelResponse response;
  EncodeDuration(found.duration, *response.mutable_compile_duration());
  response.set_was_cached(found.was_cached);
  LogAnswer(parts(), request_.origin, absl::OkStatus());
  Answer(Encode(std::move(response)));
}

// Once it has begun, its end may come on another thread, and delete this.
void ExplainCall::Execute() {
  request_.sources = MadeUpInputs(request_.InputTensors());
  request_.profile = profile_;
  request_.on_ready = [this](const std::shared_ptr<Execution>& execution) { Executed(execution); };
  Executor& executor = parts().executor;
  const std::shared_ptr<Running> running = running_;
  const absl::StatusOr<std::shared_ptr<Execution>> begun = executor.Begin(request_);
  if (!begun.ok()) return RefuseRequest(begun.status());
  running->Begun(executor, *begun);
  executor.ReceiveNone(*begun);
}

void ExplainCall::Executed(const std::shared_ptr<Execution>& execution) {
  absl::Status status = execution->status();
  grpc::ByteBuffer answer;
  if (status.ok()) {
    status = CatchOutOfMemory([&] {
      v1::ExplainModelResponse response;
      EncodeStatistics(*execution, *response.mutable_statistics());
      *response.mutable_compile_duration() = response.statistics().compile();
      response.set_was_cached(response.statistics().was_cached());
      answer = Encode(std::move(response));
      return absl::OkStatus();
    });
  } else {
    CountFailure(execution->request());
  }
  parts().executor.Finish(execution);
  if (status.ok()) {
    Answer(answer);
  } else {
    Finish(ToGrpcStatus(status));
  }
}

grpc::ByteBuffer ExplainCall::Encode(v1::ExplainModelResponse response) const {
  response.set_model_version(model_->model->version);
  EncodeExplanation(explained_.get(), *profile_, response);
  return JoinChunks(response, {});
}

void ExplainCall::RefuseRequest(const absl::Status& why) {
  if (runs_) CountFailure(request_);
  ProgramCall::RefuseRequest(why);
}

void ExplainCall::Cancel(const absl::Status& why) {
  ProgramCall::Cancel(why);
  running_->Cancel(parts().executor, why);
}

}  // namespace opmill
