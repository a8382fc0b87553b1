#include "server/oip/model_stream_infer_call.h"

#include <string>
#include <utility>

#include "inference/grpc_service.pb.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/execution/retry_delay.h"
#include "server/observe/log.h"

namespace opmill::oip {

using inference::ModelStreamInferResponse;

ModelStreamInferCall* ModelStreamInferCall::Start(grpc::CallbackServerContext& context,
                                                  RequestOrigin origin, Executor& executor,
                                                  OpenCalls& open_calls, const ModelTable& models,
                                                  const SharedMemory& memory,
                                                  uint32_t max_requests) {
  const std::shared_ptr<ModelStreamInferCall> call(new ModelStreamInferCall(
      context, std::move(origin), executor, open_calls, models, memory, max_requests));
  {
    const absl::MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  open_calls.Add(*call);
  call->StartSendInitialMetadata();
  call->Advance();
  return call.get();
}

ModelStreamInferCall::ModelStreamInferCall(grpc::CallbackServerContext& context,
                                           RequestOrigin origin, Executor& executor,
                                           OpenCalls& open_calls, const ModelTable& models,
                                           const SharedMemory& memory, uint32_t max_requests)
    : context_(context),
      executor_(executor),
      open_calls_(open_calls),
      models_(models),
      memory_(memory),
      max_requests_(max_requests),
      origin_(std::move(origin)) {}

// gRPC calls no reaction from within the Start functions and Finish, so they are called under the
// lock: nothing is started after Finish. The caller keeps the object alive.
void ModelStreamInferCall::Advance() {
  const absl::MutexLock lock(&mutex_);
  if (finished_) return;
  if (!aborted_.ok()) {
    if (writing_ == nullptr) End(aborted_);
    return;
  }
  if (writing_ == nullptr && !entries_.empty() && entries_.front()->is_ready) Write();
  if (!is_reading_ && !half_closed_ && entries_.size() < max_requests_) {
    is_reading_ = true;
    StartRead(&read_);
  }
  if (!entries_.empty() || writing_ != nullptr) return;
  if (half_closed_) return End(absl::OkStatus());
  if (draining_) return End(Draining());
}

void ModelStreamInferCall::Write() {
  writing_ = std::move(entries_.front());
  entries_.pop_front();
  writes_since_ = absl::Now();
  const Entry& entry = *writing_;
  absl::Status error = entry.error;
  if (error.ok() &&
      !entry.request.Encode(entry.execution, ModelStreamInferResponse::kInferResponseFieldNumber,
                            written_)) {
    error = entry.execution->status();
  }
  if (!error.ok()) {
    entry.request.CountFailure(entry.arrived);
    ModelStreamInferResponse response;
    response.set_error_message(std::string(error.message()));
    response.mutable_infer_response()->set_id(entry.request.id());
    if (const auto& model = entry.request.model(); model != nullptr) {
      response.mutable_infer_response()->set_model_name(model->name);
      response.mutable_infer_response()->set_model_version(model->version);
    }
    written_ = JoinBytes(response, 0, {});
  }
  StartWrite(&written_);
}

void ModelStreamInferCall::End(const absl::Status& status) {
  finished_ = true;
  {
    LogLine line(LogLevel::kInfo, "stream");
    origin_.AddTo(line);
    line.Add(status).Add("begins", requests_).Add("open", absl::Now() - opened_at_);
  }
  Finish(ToGrpcStatus(status));
}

void ModelStreamInferCall::OnReadDone(bool ok) {
  if (!ok && context_.IsCancelled()) {  // no half-close: the caller is gone
    Abort(CallerIsGone(context_));
    return;
  }
  if (ok) Handle();
  {
    const absl::MutexLock lock(&mutex_);
    is_reading_ = false;
    if (!ok) half_closed_ = true;
  }
  Advance();
}

void ModelStreamInferCall::Handle() {
  if (origin_.connection != nullptr) origin_.connection->AddPayload(read_.Length());
  const auto entry = std::make_shared<Entry>();
  entry->arrived = absl::Now();
  // The execution must not own the entry, which owns the execution.
  ExecutionRequest begin = {
      .origin = origin_,
      .deadline = DeadlineOf(context_),
      .on_ready = [call = shared_from_this(),
                   weak = std::weak_ptr(entry)](const std::shared_ptr<Execution>& execution) {
        const std::shared_ptr<Entry> answered = weak.lock();
        if (answered == nullptr) return;  // the call has ended
        answered->request.WriteShared(call->executor_, execution, [call, answered, execution] {
          call->Ready(*answered, execution, execution->status());
        });
      }};
  begin.origin.connection = nullptr;    // the call as a whole counts as one user
  begin.origin.stream_place = nullptr;  // the same
  begin.origin.arrived = entry->arrived;
  {
    const absl::MutexLock lock(&mutex_);
    if (finished_) return;
    begin.origin.execution_id = ++requests_;
    entries_.push_back(entry);
  }
  const auto refuse = [&](const absl::Status& why) {
    executor_.Refuse(begin.origin, begin.desc.schema == nullptr ? nullptr : &begin.desc, why);
    Ready(*entry, nullptr, why);
  };
  const absl::Status decoded = entry->request.Decode(read_, models_, memory_, begin);
  read_.Clear();
  if (!decoded.ok()) {
    refuse(decoded);
    return;
  }
  absl::StatusOr<std::shared_ptr<Execution>> begun = executor_.Begin(begin);
  if (!begun.ok()) {
    refuse(begun.status());
    return;
  }
  absl::Status aborted;
  {
    const absl::MutexLock lock(&mutex_);
    entry->execution = *begun;
    aborted = aborted_;
  }
  if (!aborted.ok()) executor_.Cancel(*begun, aborted);
  entry->request.SendInputs(executor_, *begun);
}

void ModelStreamInferCall::Ready(Entry& entry, const std::shared_ptr<Execution>& execution,
                                 const absl::Status& error) {
  {
    const absl::MutexLock lock(&mutex_);
    entry.execution = execution;
    entry.error = error;
    entry.is_ready = true;
  }
  Advance();
}

void ModelStreamInferCall::OnWriteDone(bool ok) {
  written_.Clear();  // before another thread can start the next write
  std::shared_ptr<Entry> written;
  {
    const absl::MutexLock lock(&mutex_);
    written.swap(writing_);
    writes_since_ = absl::InfiniteFuture();
  }
  if (written->execution != nullptr) {
    if (ok) {
      executor_.Finish(written->execution);
    } else {
      executor_.Cancel(written->execution, CallerIsGone(context_));
    }
  }
  if (ok) {
    Advance();
  } else {
    Abort(CallerIsGone(context_));
  }
}

void ModelStreamInferCall::Drain() {
  {
    const absl::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Advance();
}

void ModelStreamInferCall::OnCancel() { Abort(CallerIsGone(context_)); }

void ModelStreamInferCall::Abort(const absl::Status& why) {
  std::vector<std::shared_ptr<Execution>> executions;
  {
    const absl::MutexLock lock(&mutex_);
    if (aborted_.ok()) aborted_ = why;
    for (const auto& entry : entries_) {
      if (entry->execution != nullptr) executions.push_back(entry->execution);
    }
    if (writing_ != nullptr && writing_->execution != nullptr) {
      executions.push_back(writing_->execution);
    }
  }
  for (const auto& execution : executions) executor_.Cancel(execution, why);
  Advance();
}

void ModelStreamInferCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  {
    const absl::MutexLock lock(&mutex_);
    if (now - writes_since_ < timeout) return;
  }
  Abort(ResultsAreNotRead(timeout));
  context_.TryCancel();  // nothing else ends the write in flight
}

void ModelStreamInferCall::OnDone() {
  open_calls_.Remove(*this);
  {
    const absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  Abort(CallerIsGone(context_));  // what is left
  // Let go outside the lock. Executions own the call, so it must not own them any longer.
  std::shared_ptr<ModelStreamInferCall> self;
  std::deque<std::shared_ptr<Entry>> unanswered;
  std::shared_ptr<Entry> writing;
  const absl::MutexLock lock(&mutex_);
  unanswered.swap(entries_);
  writing.swap(writing_);
  self.swap(self_);
}

}  // namespace opmill::oip
