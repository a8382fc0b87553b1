#include "server/api/single_execution_call.h"

#include <utility>

#include "kernels/base/steady_time.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/out_of_memory.h"
#include "server/execution/admission.h"
#include "server/execution/pace.h"

namespace opmill {

SingleExecutionCall::SingleExecutionCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                                         Executor& executor, OpenCalls& open_calls)
    : context_(context), executor_(executor), open_calls_(open_calls), origin_(std::move(origin)) {}

// gRPC calls no reaction before it has the call from the service.
void SingleExecutionCall::StartReading() {
  StartRead(&request_);
  open_calls_.Add(*this);
}

void SingleExecutionCall::OnReadDone(bool ok) {
  if (!ok) {
    EndWithoutMessage(context_.IsCancelled() ? CallerIsGone(context_)
                                             : NotAProtobuf(message_type()));
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (!waits_for_message_) return;
    waits_for_message_ = false;
    waits_since_ = absl::InfiniteFuture();
  }
  origin_.arrived = SteadyNow();
  Execute();
}

bool SingleExecutionCall::EndWithoutMessage(const absl::Status& why) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!waits_for_message_) return false;
    waits_for_message_ = false;
    waits_since_ = absl::InfiniteFuture();
  }
  executor_.Refuse(origin_, nullptr, why);
  Finish(ToGrpcStatus(why));
  return true;
}

void SingleExecutionCall::Execute() {
  if (origin_.connection != nullptr) origin_.connection->AddPayload(request_.Length());
  begin_ = ExecutionRequest{.origin = std::move(origin_),
                            .deadline = DeadlineOf(context_),
                            .on_ready = [this](const std::shared_ptr<Execution>& execution) {
                              ready_ = execution;
                              Prepare(executor_, execution, [this] { WriteNext(); });
                            }};
  const absl::Status decoded = CatchOutOfMemory([&] { return Decode(request_, *begin_); });
  if (!decoded.ok()) {
    Refuse(decoded);
  } else if (!begin_->has_program()) {
    AwaitProgram();
  } else {
    Begin();
  }
}

void SingleExecutionCall::AwaitProgram() {
  ++users_;
  MakeProgram(*begin_, [this](const absl::Status& made) {
    if (made.ok()) {
      Begin();
    } else {
      Refuse(made);
    }
    Release();
  });
}

// The request did not become an execution.
void SingleExecutionCall::Refuse(const absl::Status& why) {
  executor_.Refuse(begin_->origin, begin_->desc(), why);
  Failed();
  Finish(ToGrpcStatus(why));
}

void SingleExecutionCall::Begin() {
  absl::StatusOr<std::shared_ptr<Execution>> begun = executor_.Begin(*begin_);
  if (!begun.ok()) {
    Refuse(begun.status());
    return;
  }
  absl::Status aborted;
  {
    const absl::MutexLock lock(&mutex_);
    execution_ = *begun;
    aborted = aborted_;
  }
  if (!aborted.ok()) executor_.Cancel(*begun, aborted);
  SendInputs(executor_, *begun);
  request_.Clear();
}

void SingleExecutionCall::WriteNext() {
  const Written written = WriteResponse(ready_, message_);
  if (written == Written::kError) {
    Failed();
    Finish(ToGrpcStatus(ready_->status()));
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    waits_since_ = SteadyNow();
    written_bytes_ = message_.Length();
  }
  if (written == Written::kLast) {
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  } else {
    StartWrite(&message_);
  }
}

void SingleExecutionCall::OnWriteDone(bool ok) {
  message_.Clear();
  {
    const absl::MutexLock lock(&mutex_);
    waits_since_ = absl::InfiniteFuture();
  }
  if (!ok) executor_.Cancel(ready_, CallerIsGone(context_));
  WriteNext();
}

void SingleExecutionCall::Drain() { EndWithoutMessage(Draining()); }

void SingleExecutionCall::OnCancel() { Abort(CallerIsGone(context_)); }

void SingleExecutionCall::Abort(const absl::Status& why) {
  if (EndWithoutMessage(why)) return;
  std::shared_ptr<Execution> execution;
  {
    const absl::MutexLock lock(&mutex_);
    execution = execution_;
    if (aborted_.ok()) aborted_ = why;
  }
  if (execution != nullptr) {
    executor_.Cancel(execution, why);
  } else {
    CancelProgram(why);
  }
}

void SingleExecutionCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  {
    const absl::MutexLock lock(&mutex_);
    if (now - waits_since_ < timeout) return;
    // A large message on a slow network takes long. Where the server can see them, arriving bytes
    // count as progress.
    if (waits_for_message_ &&
        (origin_.connection == nullptr || now - origin_.connection->last_received_at() < timeout)) {
      return;
    }
  }
  if (EndWithoutMessage(NoMessage(timeout))) return;
  EndUnread(ResultsAreNotRead(timeout));
}

void SingleExecutionCall::EndIfUnread(absl::Time now, const OpenCalls::MayEnd& may_end) {
  {
    const absl::MutexLock lock(&mutex_);
    if (execution_ == nullptr ||
        now - waits_since_ < Pace::kPatience + Pace::TimeFor(written_bytes_)) {
      return;
    }
    if (!may_end(*execution_->request().origin.account)) return;
  }
  EndUnread(Admission::Displaced(Admission::Displacement::kUnreadResults));
}

void SingleExecutionCall::EndUnread(const absl::Status& why) {
  Abort(why);
  context_.TryCancel();  // nothing else ends the write in flight
}

void SingleExecutionCall::OnDone() {
  message_.Clear();
  if (ready_ != nullptr) executor_.Finish(ready_);
  open_calls_.Remove(*this);
  Release();
}

void SingleExecutionCall::Release() {
  if (--users_ == 0) delete this;
}

}  // namespace opmill
