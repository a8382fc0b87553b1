#include "server/api/execute_stream_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/request_decoder.h"
#include "server/observe/log.h"

namespace opmill {

ExecuteStreamCall* ExecuteStreamCall::Start(grpc::CallbackServerContext& context,
                                            RequestOrigin origin, Executor& executor,
                                            OpenCalls& open_calls, DeadlineTimer& timer,
                                            const ExecuteStreamOptions& options) {
  const std::shared_ptr<ExecuteStreamCall> call(
      new ExecuteStreamCall(context, std::move(origin), executor, open_calls, timer, options));
  {
    const absl::MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  open_calls.Add(*call);
  // Headers at once: a caller that waits for them before it sends is right to.
  call->StartSendInitialMetadata();
  call->Advance();
  return call.get();
}

ExecuteStreamCall::ExecuteStreamCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                                     Executor& executor, OpenCalls& open_calls,
                                     DeadlineTimer& timer, const ExecuteStreamOptions& options)
    : context_(context),
      executor_(executor),
      open_calls_(open_calls),
      timer_(timer),
      options_(options),
      origin_(std::move(origin)) {}

RequestOrigin ExecuteStreamCall::OriginOf(uint64_t execution_id, absl::Time arrived) const {
  RequestOrigin origin = origin_;
  origin.connection = nullptr;  // the call is one user of it, whatever it has under way
  origin.execution_id = execution_id;
  origin.arrived = arrived;
  return origin;
}

void ExecuteStreamCall::OnReadDone(bool ok) {
  if (!ok && context_.IsCancelled()) {  // no half-close: the caller is gone
    Abort(CallerIsGone(context_));
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (finished_) return;
    read_ = ok ? Read::kArrived : Read::kHalfClosed;
  }
  Advance(/*reads_ahead=*/true);
}

// By whoever has taken it, as HandleHalfClose.
void ExecuteStreamCall::HandleMessage() {
  const bool waited = waiting_.has_value();
  const bool handled = TryHandleMessage();
  const absl::MutexLock lock(&mutex_);
  handling_ = false;
  if (!handled) {
    WakeLater();
  } else if (waited) {
    waited_until_ = absl::Now();
  }
}

bool ExecuteStreamCall::TryHandleMessage() {
  if (!waiting_.has_value()) {
    absl::StatusOr<Incoming> incoming = Parse();
    message_.Clear();
    if (!incoming.ok()) {
      executor_.Refuse(OriginOf(0, absl::Now()), nullptr, incoming.status());
      FailStream(incoming.status());
      return true;
    }
    waiting_ = *std::move(incoming);
    waiting_since_ = absl::Now();
    if (waiting_->header.has_begin()) ++begins_;
  }
  if (waiting_->header.has_begin() && !HandleBegin(*waiting_)) return false;
  HandleRest(*waiting_);
  waiting_.reset();
  return true;
}

void ExecuteStreamCall::HandleHalfClose() {
  std::vector<std::shared_ptr<Execution>> executions;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [id, execution] : open_) executions.push_back(execution);
  }
  for (const auto& execution : executions) {
    executor_.EndInputs(execution, "The stream was half-closed");
  }
  const absl::MutexLock lock(&mutex_);
  read_ = Read::kEnded;
  handling_ = false;
}

// Tries the begin again soon, if nothing does before.
void ExecuteStreamCall::WakeLater() {
  if (wakes_later_) return;
  wakes_later_ = true;
  timer_.Add(absl::Now() + kRetryInterval, [weak = weak_from_this()] {
    const std::shared_ptr<ExecuteStreamCall> call = weak.lock();
    if (call == nullptr) return;
    {
      const absl::MutexLock lock(&call->mutex_);
      call->wakes_later_ = false;
      call->retry_ = true;
    }
    call->Advance();
  });
}

absl::StatusOr<ExecuteStreamCall::Incoming> ExecuteStreamCall::Parse() const {
  if (origin_.connection != nullptr) origin_.connection->AddPayload(message_.Length());
  ASSIGN_OR_RETURN(SplitMessage message, SplitMessage::Split(message_, PayloadKind::kChunks));
  v1::ExecuteStreamRequest header;
  if (!header.ParseFromString(message.header())) return NotAProtobuf("ExecuteStreamRequest");
  return Incoming{std::move(header), std::move(message), absl::Now()};
}

bool ExecuteStreamCall::HandleBegin(const Incoming& incoming) {
  const uint64_t id = incoming.header.execution_id();
  if (const std::shared_ptr<Execution> twin = Find(id)) {
    executor_.Cancel(twin, InvalidField("execution_id",
                                        absl::StrCat("execution_id (", id,
                                                     ") is open on this stream already; neither of "
                                                     "the two is computed.")));
    const absl::MutexLock lock(&mutex_);
    // Unless its end has been told meanwhile.
    if (const auto found = open_.find(id); found != open_.end() && found->second == twin) {
      displaced_.push_back(twin);
      open_.erase(found);
    }
    Abandon(id);
    return true;
  }
  absl::StatusOr<ExecutionRequest> request = MakeRequest(incoming);
  if (!request.ok()) {
    executor_.Refuse(OriginOf(id, incoming.arrived), nullptr, request.status());
    ReplyError(id, request.status(), true);
    return true;
  }
  {
    const absl::MutexLock lock(&mutex_);
    abandoned_.erase(id);
    if (finished_ || failure_.has_value()) return true;
  }
  absl::StatusOr<std::shared_ptr<Execution>> begun =
      HasRoom() || request->deadline <= absl::Now()
          ? executor_.Begin(*request)
          : WithRetryDelay(absl::ResourceExhaustedError(
                               absl::StrCat("The stream has ", options_.max_executions,
                                            " executions (max_executions_per_stream) under way.")),
                           absl::Milliseconds(500));
  if (!begun.ok()) {
    if (MayWait(begun.status())) return false;
    executor_.Refuse(request->origin, &request->desc, begun.status());
    ReplyError(id, begun.status(), true);
    return true;
  }
  bool too_late = false;
  {
    const absl::MutexLock lock(&mutex_);
    too_late = finished_ || failure_.has_value();
    if ((*begun)->status().ok()) {
      if (!too_late) open_[id] = *begun;
    } else {  // it has ended on another thread, and Ready has been here or is on its way
      Abandon(id);
    }
  }
  if (too_late) executor_.Cancel(*begun, CallerIsGone(context_));
  return true;
}

absl::StatusOr<ExecutionRequest> ExecuteStreamCall::MakeRequest(const Incoming& incoming) {
  const v1::BeginExecution& begin = incoming.header.begin();
  const uint64_t id = incoming.header.execution_id();
  absl::StatusOr<OperatorDesc> desc = DecodeRequest(begin);
  if (!desc.ok()) return UnderPath("begin", desc.status());
  absl::Time deadline = DeadlineOf(context_);
  if (begin.has_timeout()) {
    const absl::Duration timeout =
        absl::Seconds(begin.timeout().seconds()) + absl::Nanoseconds(begin.timeout().nanos());
    if (timeout <= absl::ZeroDuration()) {
      return InvalidField("begin.timeout",
                          absl::StrCat("begin.timeout (", absl::FormatDuration(timeout),
                                       ") is not longer than 0."));
    }
    deadline = std::min(deadline, incoming.arrived + timeout);
  }
  return ExecutionRequest{
      .origin = OriginOf(id, incoming.arrived),
      .desc = *std::move(desc),
      .deadline = deadline,
      .on_ready = [call = shared_from_this(), id](const std::shared_ptr<Execution>& execution) {
        call->Ready(id, execution);
      }};
}

// Whether a begin that was refused for lack of room should be tried again.
bool ExecuteStreamCall::MayWait(const absl::Status& refusal) {
  if (!absl::IsResourceExhausted(refusal) || !IsRetryable(refusal)) return false;
  const absl::MutexLock lock(&mutex_);
  if (finished_ || failure_.has_value()) return false;
  const bool progresses = std::any_of(open_.begin(), open_.end(),
                                      [](const auto& open) { return !open.second->uploading(); });
  if (progresses) waiting_since_ = absl::Now();
  return absl::Now() - waiting_since_ < kPatience;
}

bool ExecuteStreamCall::HasRoom() {
  const absl::MutexLock lock(&mutex_);
  return open_.size() < options_.max_executions;
}

void ExecuteStreamCall::HandleRest(const Incoming& incoming) {
  const v1::ExecuteStreamRequest& header = incoming.header;
  const std::shared_ptr<Execution> execution = Find(header.execution_id());
  if (execution == nullptr) {
    // It has ended, and so been answered; what says nothing new is no mistake then.
    const auto& chunks = incoming.message.chunks();
    const bool has_bytes = std::any_of(chunks.begin(), chunks.end(),
                                       [](const IncomingChunk& c) { return c.data.size() > 0; });
    if (header.has_begin() || header.has_cancel() || !has_bytes) return;
    {
      const absl::MutexLock lock(&mutex_);
      if (abandoned_.contains(header.execution_id())) return;
    }
    const absl::Status unknown = InvalidField(
        "execution_id",
        absl::StrCat("execution_id (", header.execution_id(),
                     ") is not open on this stream: no begin has come, or it has ended."));
    executor_.Refuse(OriginOf(header.execution_id(), incoming.arrived), nullptr, unknown);
    ReplyError(header.execution_id(), unknown, false);
    return;
  }
  size_t index = 0;
  for (const IncomingChunk& chunk : incoming.message.chunks()) {
    executor_.Receive(execution, chunk, absl::StrCat("chunks[", index++, "]"));
  }
  if (header.end_of_inputs()) executor_.EndInputs(execution, "end_of_inputs came");
  if (header.has_cancel()) {
    executor_.Cancel(execution, absl::CancelledError("The caller cancelled the execution."));
  }
}

std::shared_ptr<Execution> ExecuteStreamCall::Find(uint64_t id) {
  const absl::MutexLock lock(&mutex_);
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : found->second;
}

void ExecuteStreamCall::Ready(uint64_t id, const std::shared_ptr<Execution>& execution) {
  const absl::Status status = execution->status();
  if (!status.ok()) {
    ReplyError(id, status, !execution->uploaded(), execution.get());
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (finished_) return;
    replies_.push_back(
        {.id = id, .results = std::make_unique<ResultStream>(execution, options_.max_chunk_bytes)});
  }
  Advance();
}

void ExecuteStreamCall::ReplyError(uint64_t id, absl::Status error, bool input_may_follow,
                                   const Execution* ended) {
  {
    const absl::MutexLock lock(&mutex_);
    Forget(id, ended);
    if (finished_) return;
    retry_ = true;
    replies_.push_back({.id = id, .error = std::move(error)});
    ++waiting_errors_;
    if (input_may_follow) Abandon(id);
  }
  Advance();
}

// The id may be another's by now, where the caller has begun it twice.
void ExecuteStreamCall::Forget(uint64_t id, const Execution* ended) {
  const auto found = open_.find(id);
  if (found != open_.end() && found->second.get() == ended) open_.erase(found);
  std::erase_if(displaced_, [ended](const auto& execution) { return execution.get() == ended; });
}

void ExecuteStreamCall::Abandon(uint64_t id) {
  if (!abandoned_.insert(id).second) return;
  abandoned_order_.push_back(id);
  if (abandoned_order_.size() <= kMaxAbandoned) return;
  abandoned_.erase(abandoned_order_.front());
  abandoned_order_.pop_front();
}

void ExecuteStreamCall::FailStream(const absl::Status& error) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!failure_.has_value()) failure_ = error;
  }
  CancelAll(error);
  Advance();
}

void ExecuteStreamCall::CancelAll(const absl::Status& why) {
  std::vector<std::shared_ptr<Execution>> executions;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [id, execution] : open_) executions.push_back(execution);
  }
  for (const auto& execution : executions) executor_.Cancel(execution, why);
}

// Starts to write the next message. False when there is none or one is being written.
bool ExecuteStreamCall::WriteNext() {
  if (writing_ || failure_.has_value() || replies_.empty()) return false;
  Reply reply = std::move(replies_.front());
  replies_.pop_front();
  StackMessage<v1::ExecuteStreamResponse> header;
  header->set_execution_id(reply.id);
  if (reply.results != nullptr) {
    if (reply.results->Next(*header, outgoing_)) {
      if (reply.results->done()) {
        last_written_ = reply.results->execution();
        Forget(reply.id, last_written_.get());
      } else {
        replies_.push_back(std::move(reply));  // the others' turn
      }
      StartNextWrite();
      return true;
    }
    reply.error = reply.results->execution()->status();
    Forget(reply.id, reply.results->execution().get());
  } else {
    --waiting_errors_;
  }
  *header->mutable_status() = ToRpcStatus(reply.error);
  outgoing_ = JoinChunks(*header, {});
  StartNextWrite();
  return true;
}

// Where another reply waits, which then follows for certain, gRPC may gather both in one packet.
void ExecuteStreamCall::StartNextWrite() {
  writing_ = true;
  written_at_ = absl::Now();
  grpc::WriteOptions options;
  if (!replies_.empty()) options.set_buffer_hint();
  StartWrite(&outgoing_, options);
}

void ExecuteStreamCall::Advance(bool reads_ahead) {
  for (;;) {
    switch (Step(reads_ahead)) {
      case Work::kNone:
        return;
      case Work::kMessage:
        HandleMessage();
        break;
      case Work::kHalfClose:
        HandleHalfClose();
        break;
    }
  }
}

// Does what the state allows; what it returns is now the caller's to handle. gRPC calls no reaction
// from within the Start functions and Finish, so they are called under the lock: nothing is started
// after Finish. Whoever calls this keeps the object alive.
ExecuteStreamCall::Work ExecuteStreamCall::Step(bool reads_ahead) {
  const absl::MutexLock lock(&mutex_);
  if (finished_) return Work::kNone;
  const std::optional<absl::Status> end = WriteNext() ? std::nullopt : EndOfStream();
  if (end.has_value()) {
    finished_ = true;
    {
      LogLine line(LogLevel::kInfo, "stream");
      origin_.AddTo(line);
      line.Add(*end).Add("begins", begins_).Add("open", absl::Now() - opened_at_);
    }
    Finish(ToGrpcStatus(*end));
    return Work::kNone;
  }
  if (failure_.has_value()) return Work::kNone;
  const Work work = handling_ ? Work::kNone : TakeWork();
  handling_ |= work != Work::kNone;
  if (read_ == Read::kNone && waiting_errors_ < kMaxWaitingErrors && (!handling_ || reads_ahead)) {
    read_ = Read::kStarted;
    StartRead(&incoming_);
  }
  return work;
}

// While nobody handles anything.
ExecuteStreamCall::Work ExecuteStreamCall::TakeWork() {
  if (waiting_.has_value()) {
    if (!retry_) return Work::kNone;
    retry_ = false;
    return Work::kMessage;
  }
  if (read_ == Read::kHalfClosed) return Work::kHalfClose;
  if (read_ != Read::kArrived || waiting_errors_ >= kMaxWaitingErrors) return Work::kNone;
  message_.Swap(&incoming_);
  read_ = Read::kNone;
  return Work::kMessage;
}

// With nothing to write.
std::optional<absl::Status> ExecuteStreamCall::EndOfStream() const {
  // While somebody works on a message, maybe on a thread that gRPC does not know, the call's
  // context must live.
  if (writing_ || handling_) return std::nullopt;
  if (failure_.has_value()) return failure_;
  if (!open_.empty() || !displaced_.empty()) return std::nullopt;
  if (read_ == Read::kEnded) return absl::OkStatus();
  const bool has_more =
      waiting_.has_value() || read_ == Read::kArrived || read_ == Read::kHalfClosed;
  if (!draining_ || has_more) return std::nullopt;
  return absl::UnavailableError("The server is draining, and the stream has nothing under way.");
}

void ExecuteStreamCall::OnWriteDone(bool ok) {
  std::shared_ptr<Execution> written;
  outgoing_.Clear();
  {
    const absl::MutexLock lock(&mutex_);
    writing_ = false;
    written.swap(last_written_);
    retry_ = true;
    if (!ok && !failure_.has_value()) failure_ = CallerIsGone(context_);
  }
  if (!ok) CancelAll(CallerIsGone(context_));
  if (written != nullptr) {
    if (ok) {
      executor_.Finish(written);
    } else {
      executor_.Cancel(written, CallerIsGone(context_));
    }
  }
  Advance();
}

void ExecuteStreamCall::OnCancel() { Abort(CallerIsGone(context_)); }

void ExecuteStreamCall::Abort(const absl::Status& why) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!failure_.has_value()) failure_ = why;
  }
  CancelAll(why);
  Advance();
}

void ExecuteStreamCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  std::vector<std::shared_ptr<Execution>> stalled;
  bool does_not_read = false;
  {
    const absl::MutexLock lock(&mutex_);
    if (finished_ || failure_.has_value()) return;
    does_not_read = writing_ && now - written_at_ >= timeout;
    // While a begin waits, or answers are not read, it is we who do not take the input.
    if (read_ == Read::kStarted && !handling_ && !waiting_.has_value() &&
        now - waited_until_ >= timeout) {
      for (const auto& [id, execution] : open_) {
        if (execution->stalled(now) >= timeout) stalled.push_back(execution);
      }
    }
  }
  if (does_not_read) {
    Abort(ResultsAreNotRead(timeout));
    context_.TryCancel();  // the write in flight ends no other way
    return;
  }
  for (const auto& execution : stalled) {
    executor_.Cancel(execution, absl::DeadlineExceededError(absl::StrCat(
                                    "No input has come for ", absl::FormatDuration(timeout),
                                    " (stall_timeout), and some of it is missing.")));
  }
}

void ExecuteStreamCall::Drain() {
  {
    const absl::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Advance();
}

void ExecuteStreamCall::OnDone() {
  open_calls_.Remove(*this);
  CancelAll(CallerIsGone(context_));
  std::shared_ptr<ExecuteStreamCall> self;
  {
    const absl::MutexLock lock(&mutex_);
    open_.clear();
    displaced_.clear();
    replies_.clear();
    self.swap(self_);
  }
}

}  // namespace opmill
