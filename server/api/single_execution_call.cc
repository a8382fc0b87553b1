#include "server/api/single_execution_call.h"

#include <utility>

#include "kernels/base/steady_time.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/out_of_memory.h"
#include "server/execution/admission.h"
#include "server/execution/pace.h"

namespace opmill {

void SingleExecutionCall::Receive(grpc::ByteBuffer& message) {
  begin_ = ExecutionRequest{.origin = std::move(origin()),
                            .deadline = DeadlineOf(context()),
                            .on_ready = [this](const std::shared_ptr<Execution>& execution) {
                              ready_ = execution;
                              Prepare(parts().executor, execution, [this] { WriteNext(); });
                            }};
  const absl::Status decoded = CatchOutOfMemory([&] { return Decode(message, *begin_); });
  if (!decoded.ok()) {
    RefuseRequest(decoded);
  } else if (!begin_->has_program()) {
    AwaitProgram();
  } else {
    Begin();
  }
}

void SingleExecutionCall::AwaitProgram() {
  AddUser();
  MakeProgram(*begin_, [this](const absl::Status& made) {
    if (made.ok()) {
      Begin();
    } else {
      RefuseRequest(made);
    }
    Release();
  });
}

// The request did not become an execution.
void SingleExecutionCall::RefuseRequest(const absl::Status& why) {
  Failed();
  Refuse(begin_->origin, begin_->desc(), why);
}

void SingleExecutionCall::Begin() {
  absl::StatusOr<std::shared_ptr<Execution>> begun = parts().executor.Begin(*begin_);
  if (!begun.ok()) {
    RefuseRequest(begun.status());
    return;
  }
  absl::Status aborted;
  {
    const absl::MutexLock lock(&mutex_);
    execution_ = *begun;
    aborted = aborted_;
  }
  if (!aborted.ok()) parts().executor.Cancel(*begun, aborted);
  SendInputs(parts().executor, *begun);
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
  if (!ok) parts().executor.Cancel(ready_, CallerIsGone(context()));
  WriteNext();
}

void SingleExecutionCall::Cancel(const absl::Status& why) {
  std::shared_ptr<Execution> execution;
  {
    const absl::MutexLock lock(&mutex_);
    execution = execution_;
    if (aborted_.ok()) aborted_ = why;
  }
  if (execution != nullptr) {
    parts().executor.Cancel(execution, why);
  } else {
    CancelProgram(why);
  }
}

void SingleExecutionCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  MessageCall::EndIfStalled(now, timeout);
  {
    const absl::MutexLock lock(&mutex_);
    if (now - waits_since_ < timeout) return;
  }
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
  context().TryCancel();  // nothing else ends the write in flight
}

void SingleExecutionCall::OnDone() {
  message_.Clear();
  if (ready_ != nullptr) parts().executor.Finish(ready_);
  MessageCall::OnDone();
}

}  // namespace opmill
