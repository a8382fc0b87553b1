#include "server/oip/model_stream_infer_call.h"

#include <optional>
#include <string>
#include <utility>

#include "inference/grpc_service.pb.h"
#include "kernels/base/steady_time.h"
#include "server/api/call_context.h"
#include "server/api/out_of_memory.h"

namespace opmill::oip {

using inference::ModelStreamInferResponse;

ModelStreamInferCall* ModelStreamInferCall::Start(grpc::CallbackServerContext& context,
                                                  RequestOrigin origin, Executor& executor,
                                                  OpenCalls& open_calls, const ModelTable& models,
                                                  ModelPrograms& programs,
                                                  const TensorPlaces& places,
                                                  uint32_t max_requests) {
  const std::shared_ptr<ModelStreamInferCall> call(new ModelStreamInferCall(
      context, std::move(origin), executor, open_calls, models, programs, places, max_requests));
  call->Open(call);
  return call.get();
}

ModelStreamInferCall::ModelStreamInferCall(grpc::CallbackServerContext& context,
                                           RequestOrigin origin, Executor& executor,
                                           OpenCalls& open_calls, const ModelTable& models,
                                           ModelPrograms& programs, const TensorPlaces& places,
                                           uint32_t max_requests)
    : StreamCall(context, std::move(origin), executor, open_calls, max_requests),
      models_(models),
      programs_(programs),
      places_(places) {}

void ModelStreamInferCall::Aborted(const absl::Status& why) {
  std::shared_ptr<InferRequest> request;
  {
    const absl::MutexLock lock(&mutex_);
    request = handled_;
  }
  if (request != nullptr) request->CancelProgram(programs_, why);
}

void ModelStreamInferCall::Advance() {
  const absl::MutexLock lock(&mutex_);
  const InferStreamState::Actions actions = state_.Advance(SteadyNow());
  if (actions.write.has_value()) Write(*actions.write);
  if (actions.finish.has_value()) End(*actions.finish, state_.requests());
  if (actions.read) StartRead(&read_);
}

void ModelStreamInferCall::Write(const InferStreamState::Answer& answer) {
  const InferRequest& request = *answer.request;
  absl::Status error = answer.error;
  if (error.ok() &&
      !request.Encode(answer.execution, ModelStreamInferResponse::kInferResponseFieldNumber,
                      written_)) {
    error = answer.execution->status();
  }
  if (!error.ok()) {
    request.CountFailure();
    ModelStreamInferResponse response;
    response.set_error_message(std::string(error.message()));
    response.mutable_infer_response()->set_id(request.id());
    if (const auto& model = request.model(); model != nullptr) {
      response.mutable_infer_response()->set_model_name(model->name);
      response.mutable_infer_response()->set_model_version(model->version);
    }
    written_ = JoinBytes(response, 0, {});
  }
  StartWriting();
}

void ModelStreamInferCall::OnReadDone(bool ok) {
  if (!ok && context_.IsCancelled()) {  // no half-close: the caller is gone
    Abort(CallerIsGone(context_));
    return;
  }
  if (ok) {
    HandleRequest();
  } else {
    const absl::MutexLock lock(&mutex_);
    state_.HalfClosed();
  }
  Advance();
}

void ModelStreamInferCall::HandleRequest() {
  CountPayload(read_);
  const absl::Time arrived = SteadyNow();
  const auto request = std::make_shared<InferRequest>();
  std::optional<uint64_t> number;
  {
    const absl::MutexLock lock(&mutex_);
    number = state_.RequestRead(request);
    if (!number.has_value()) return;
    handled_ = request;
  }
  const auto begin = std::make_shared<ExecutionRequest>(
      ExecutionRequest{.origin = OriginOf(*number, arrived), .deadline = DeadlineOf(context_)});
  absl::Status decoded =
      CatchOutOfMemory([&] { return request->Decode(read_, models_, places_, *begin); });
  read_.Clear();
  if (!decoded.ok() || begin->has_program()) {
    Decoded(*number, request, *begin, std::move(decoded));
    return;
  }
  request->MakeProgram(
      programs_, places_, executor_, *begin,
      [call = shared_from_this(), number = *number, request, begin](const absl::Status& made) {
        call->Decoded(number, request, *begin, made);
        call->Advance();
      });
}

void ModelStreamInferCall::Decoded(uint64_t number, const std::shared_ptr<InferRequest>& request,
                                   ExecutionRequest& begin, absl::Status decoded) {
  if (decoded.ok()) decoded = Begin(number, request, begin);
  if (!decoded.ok()) {
    executor_.Refuse(begin.origin, begin.desc(), decoded);
    Ready(number, nullptr, decoded);
  }
  const absl::MutexLock lock(&mutex_);
  handled_ = nullptr;
  state_.RequestHandled();
}

absl::Status ModelStreamInferCall::Begin(uint64_t number,
                                         const std::shared_ptr<InferRequest>& request,
                                         ExecutionRequest& begin) {
  begin.on_ready = [call = shared_from_this(), number,
                    request](const std::shared_ptr<Execution>& execution) {
    request->WriteShared(call->executor_, execution, [call, number, execution] {
      call->Ready(number, execution, execution->status());
    });
  };
  absl::StatusOr<std::shared_ptr<Execution>> begun = executor_.Begin(begin);
  if (!begun.ok()) return begun.status();
  absl::Status stream;
  {
    const absl::MutexLock lock(&mutex_);
    stream = state_.Begun(number, *begun);
  }
  if (!stream.ok()) executor_.Cancel(*begun, stream);
  request->SendInputs(executor_, *begun);
  return absl::OkStatus();
}

void ModelStreamInferCall::Ready(uint64_t number, const std::shared_ptr<Execution>& execution,
                                 const absl::Status& error) {
  {
    const absl::MutexLock lock(&mutex_);
    state_.Ready(number, execution, error);
  }
  Advance();
}

void ModelStreamInferCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  bool is_unread = false;
  {
    const absl::MutexLock lock(&mutex_);
    is_unread = state_.IsUnread(timeout, now);
  }
  if (is_unread) EndUnread(ResultsAreNotRead(timeout));
}

}  // namespace opmill::oip
