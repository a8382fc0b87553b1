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

ExplainCall* ExplainCall::Start(const ServiceParts& parts, grpc::CallbackServerContext& context,
                                RequestOrigin origin, const grpc::ByteBuffer& request,
                                grpc::ByteBuffer& response) {
  auto* const call = new ExplainCall(parts, std::move(origin), DeadlineOf(context), response);
  call->Open();
  if (const absl::Status fits = CheckMetadata(context); fits.ok()) {
    call->Begin(request);
  } else {
    call->Refuse(fits);
  }
  return call;
}

ExplainCall::ExplainCall(const ServiceParts& parts, RequestOrigin origin, absl::Time deadline,
                         grpc::ByteBuffer& response)
    : UnaryCall(parts),
      response_(response),
      wanted_(parts.models),
      request_{.origin = std::move(origin), .deadline = deadline} {}

void ExplainCall::Begin(const grpc::ByteBuffer& request) {
  const absl::Status decoded = CatchOutOfMemory([&] { return Decode(request); });
  if (!decoded.ok()) {
    Refuse(decoded);
  } else if (request_.has_program()) {
    Explain();
  } else {
    wanted_.Make(parts_.executor, request_, [this](const absl::Status& made) {
      if (made.ok()) {
        Explain();
      } else {
        Refuse(made);
      }
    });
  }
}

absl::Status ExplainCall::Decode(const grpc::ByteBuffer& request) {
  ASSIGN_OR_RETURN(const SplitMessage message, SplitMessage::Split(request, PayloadKind::kInputs));
  StackMessage<v1::ExplainModelRequest> header;
  if (!header->ParseFromString(message.header())) return NotAProtobuf("ExplainModelRequest");
  runs_ = header->run();
  request_.priority = header->priority();
  return wanted_.DecodeModel(header->model(), message.model_file(), request_);
}

void ExplainCall::Explain() {
  const auto next = [this] { runs_ ? Execute() : Compile(); };
  model_ = request_.model;
  if (model_->graph == nullptr) return next();
  wanted_.Explain(parts_.executor, request_, [this, next](const auto& explained) {
    if (!explained.ok()) return Refuse(explained.status());
    explained_ = *explained;
    next();
  });
}

void ExplainCall::Compile() {
  const absl::Status posted = parts_.executor.Compile(
      *request_.program, request_.deadline, cancelled_,
      [this](const absl::StatusOr<CachedOperator>& found) { Compiled(found); });
  if (!posted.ok()) Refuse(posted);
}

void ExplainCall::Compiled(const absl::StatusOr<CachedOperator>& found) {
  if (!found.ok()) return Refuse(found.status());
  profile_->report = found->compiled->Report();
  v1::ExplainModelResponse response;
  EncodeDuration(found->duration, *response.mutable_compile_duration());
  response.set_was_cached(found->was_cached);
  SetResponse(std::move(response));
  End(request_.origin, absl::OkStatus());
}

// Once it has begun, its end may come on another thread, and delete this.
void ExplainCall::Execute() {
  request_.sources = MadeUpInputs(request_.InputTensors());
  request_.profile = profile_;
  request_.on_ready = [this](const std::shared_ptr<Execution>& execution) { Executed(execution); };
  Executor& executor = parts_.executor;
  const std::shared_ptr<Running> running = running_;
  const absl::StatusOr<std::shared_ptr<Execution>> begun = executor.Begin(request_);
  if (!begun.ok()) return Refuse(begun.status());
  running->Begun(executor, *begun);
  executor.ReceiveNone(*begun);
}

void ExplainCall::Executed(const std::shared_ptr<Execution>& execution) {
  absl::Status status = execution->status();
  if (status.ok()) {
    status = CatchOutOfMemory([&] {
      v1::ExplainModelResponse response;
      EncodeStatistics(*execution, *response.mutable_statistics());
      *response.mutable_compile_duration() = response.statistics().compile();
      response.set_was_cached(response.statistics().was_cached());
      SetResponse(std::move(response));
      return absl::OkStatus();
    });
  } else {
    CountFailure(execution->request());
  }
  parts_.executor.Finish(execution);
  Finish(ToGrpcStatus(status));
}

void ExplainCall::SetResponse(v1::ExplainModelResponse response) {
  response.set_model_version(model_->model->version);
  EncodeExplanation(explained_.get(), *profile_, response);
  response_ = JoinChunks(response, {});
}

void ExplainCall::Refuse(const absl::Status& why) {
  parts_.executor.Refuse(request_.origin, request_.desc(), why);
  if (runs_) CountFailure(request_);
  Finish(ToGrpcStatus(why));
}

void ExplainCall::Abort(const absl::Status& why) {
  *cancelled_ = true;
  wanted_.Cancel(why);
  running_->Cancel(parts_.executor, why);
}

}  // namespace opmill
