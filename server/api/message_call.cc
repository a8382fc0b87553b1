#include "server/api/message_call.h"

#include <utility>

#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/execution/admission.h"

namespace opmill {

// gRPC calls no reaction before it has the call from the service.
void MessageCall::StartReading() {
  StartRead(&request_);
  parts_.open_calls.Add(*this);
}

void MessageCall::OnReadDone(bool ok) {
  if (!ok) {
    EndWithoutMessage(context_.IsCancelled() ? CallerIsGone(context_)
                                             : NotAProtobuf(message_type()));
    return;
  }
  if (!StopWaiting(Phase::kHasMessage)) return;
  origin_.called_at = std::exchange(origin_.arrived, SteadyNow());
  if (origin_.connection != nullptr) origin_.connection->AddPayload(request_.Length());
  Receive(request_);
}

bool MessageCall::StopWaiting(Phase next) {
  const absl::MutexLock lock(&mutex_);
  if (phase_ != Phase::kWaits) return false;
  phase_ = next;
  return true;
}

bool MessageCall::EndWithoutMessage(const absl::Status& why) {
  if (!StopWaiting(Phase::kEndedWithout)) return false;
  Refuse(origin_, nullptr, why);
  return true;
}

void MessageCall::Answer(grpc::ByteBuffer response) {
  answer_.Swap(&response);
  StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
}

void MessageCall::Refuse(const RequestOrigin& origin, const OperatorDesc* desc,
                         const absl::Status& why) {
  parts_.executor.Refuse(origin, desc, why);
  Finish(ToGrpcStatus(why));
}

void MessageCall::Drain() { EndWithoutMessage(Draining()); }

void MessageCall::OnCancel() { Abort(CallerIsGone(context_)); }

void MessageCall::Abort(const absl::Status& why) {
  if (EndWithoutMessage(why)) return;
  {
    const absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kEndedWithout) return;
  }
  Cancel(why);
}

void MessageCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  if (now - waits_since_ < timeout) return;
  {
    const absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kWaits) return;
    // A large message on a slow network takes long. Where the server can see them, arriving bytes
    // count as progress.
    if (origin_.connection == nullptr || now - origin_.connection->last_received_at() < timeout) {
      return;
    }
  }
  EndWithoutMessage(NoMessage(timeout));
}

void MessageCall::OnDone() {
  parts_.open_calls.Remove(*this);
  Release();
}

void MessageCall::Release() {
  if (--users_ == 0) delete this;
}

}  // namespace opmill
