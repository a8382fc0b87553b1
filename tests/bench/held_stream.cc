#include "tests/bench/held_stream.h"

#include "opmill/v1/service.pb.h"
#include "proto/payload.h"

namespace opmill {

HeldStream::HeldStream(grpc::GenericStub& stub) {
  stub.PrepareBidiStreamingCall(&context_, "/opmill.v1.OperatorService/ExecuteStream", {}, this);
  AddHold();
  StartRead(&answer_);
  StartCall();
}

HeldStream::~HeldStream() {
  context_.TryCancel();
  RemoveHold();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return done_; });
}

absl::Status HeldStream::Begin(const v1::OperatorDesc& desc, uint64_t executions) {
  for (uint64_t id = 1; id <= executions; ++id) {
    v1::ExecuteStreamRequest request;
    request.set_execution_id(id);
    *request.mutable_begin()->mutable_operator_() = desc;
    begins_.push_back(JoinChunks(request, {}));
  }
  if (begins_.empty()) return absl::OkStatus();
  StartWrite(&begins_[0]);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return broken_ || written_ == begins_.size(); });
  return broken_ ? absl::UnavailableError("A held stream has ended.") : absl::OkStatus();
}

void HeldStream::OnWriteDone(bool ok) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!ok) {
    broken_ = true;
  } else if (++written_ < begins_.size()) {
    StartWrite(&begins_[written_]);
  }
  changed_.notify_all();
}

void HeldStream::OnDone(const grpc::Status&) {
  std::lock_guard<std::mutex> lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

}  // namespace opmill
