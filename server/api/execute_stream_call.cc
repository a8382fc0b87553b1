#include "server/api/execute_stream_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#include "proto/stack_message.h"
#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/out_of_memory.h"
#include "server/api/resident_tensors.h"
#include "server/api/result_stream.h"
#include "server/status/retry_delay.h"

namespace opmill {

ExecuteStreamCall* ExecuteStreamCall::Start(grpc::CallbackServerContext& context,
                                            RequestOrigin origin, Executor& executor,
                                            OpenCalls& open_calls, const ModelSources& models,
                                            TensorStore& tensors, DeadlineTimer& timer,
                                            const ExecuteStreamOptions& options) {
  const std::shared_ptr<ExecuteStreamCall> call(new ExecuteStreamCall(
      context, std::move(origin), executor, open_calls, models, tensors, timer, options));
  call->Open(call);
  return call.get();
}

ExecuteStreamCall::ExecuteStreamCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                                     Executor& executor, OpenCalls& open_calls,
                                     const ModelSources& models, TensorStore& tensors,
                                     DeadlineTimer& timer, const ExecuteStreamOptions& options)
    : StreamCall(context, std::move(origin), executor, open_calls, options.max_executions),
      models_(models),
      tensors_(tensors),
      timer_(timer),
      options_(options) {}

void ExecuteStreamCall::AdvanceWith(bool reads_ahead) {
  for (;;) {
    switch (Step(reads_ahead)) {
      case StreamState::Work::kNone:
        return;
      case StreamState::Work::kMessage:
      case StreamState::Work::kWaitingBegin:
        HandleMessage();
        break;
      case StreamState::Work::kHalfClose:
        HandleHalfClose();
        break;
    }
  }
}

StreamState::Work ExecuteStreamCall::Step(bool reads_ahead) {
  const absl::MutexLock lock(&mutex_);
  StreamState::Actions actions = state_.Advance(reads_ahead);
  if (actions.write.has_value()) Write(*std::move(actions.write));
  if (actions.finish.has_value()) End(*actions.finish, begins_);
  if (actions.work == StreamState::Work::kMessage) message_.Swap(&read_);
  if (actions.read) StartRead(&read_);
  return actions.work;
}

void ExecuteStreamCall::Write(StreamState::Reply reply) {
  StackMessage<v1::ExecuteStreamResponse> header;
  header->set_execution_id(reply.id);
  StreamState::Written written = StreamState::Written::kError;
  if (reply.execution != nullptr) {
    ResultStream results(reply.execution, options_.max_chunk_bytes, reply.position);
    if (results.Next(*header, written_)) {
      reply.position = results.position();
      written = results.done() ? StreamState::Written::kLast : StreamState::Written::kMore;
    } else {
      reply.error = reply.execution->status();
      CountFailure(reply.execution->request());
    }
  }
  if (written == StreamState::Written::kError) {
    *header->mutable_status() = ToRpcStatus(reply.error);
    written_ = JoinChunks(*header, {});
  }
  state_.WriteStarted(std::move(reply), written, SteadyNow());
  // Where another reply waits, which then follows for certain, gRPC may gather both in one packet.
  grpc::WriteOptions options;
  if (state_.has_replies()) options.set_buffer_hint();
  StartWriting(options);
}

void ExecuteStreamCall::OnReadDone(bool ok) {
  if (!ok && context_.IsCancelled()) {  // no half-close: the caller is gone
    Abort(CallerIsGone(context_));
    return;
  }
  {
    const absl::MutexLock lock(&mutex_);
    state_.ReadDone(ok);
  }
  AdvanceWith(/*reads_ahead=*/true);
}

void ExecuteStreamCall::EndIfStalled(absl::Time now, absl::Duration timeout) {
  std::vector<std::shared_ptr<Execution>> stalled;
  StreamState::Stall stall = StreamState::Stall::kNone;
  {
    const absl::MutexLock lock(&mutex_);
    stall = state_.StalledFor(timeout, now);
    if (stall == StreamState::Stall::kInput) stalled = state_.open();
  }
  if (stall == StreamState::Stall::kReader) {
    EndUnread(ResultsAreNotRead(timeout));
    return;
  }
  std::erase_if(stalled, [&](const auto& each) { return each->stalled(now) < timeout; });
  CancelAll(stalled, absl::DeadlineExceededError(
                         absl::StrCat("No input has come for ", absl::FormatDuration(timeout),
                                      " (stall_timeout), and some of it is missing.")));
}

void ExecuteStreamCall::HandleMessage() {
  const Handled handled = TryHandleMessage();
  const absl::MutexLock lock(&mutex_);
  switch (handled) {
    case Handled::kYes:
      state_.MessageHandled(SteadyNow());
      break;
    case Handled::kWaitsForRoom:
      if (state_.MessageWaits()) RetryLater();
      break;
    case Handled::kWaitsForProgram:
      state_.MessageWaitsForProgram();
      break;
  }
}

ExecuteStreamCall::Handled ExecuteStreamCall::TryHandleMessage() {
  if (!incoming_.has_value()) {
    const absl::Status parsed = CatchOutOfMemory([&] { return Parse(); });
    if (!parsed.ok()) {
      executor_.Refuse(OriginOf(0, SteadyNow()), nullptr, parsed);
      Abort(parsed);
      return Handled::kYes;
    }
    if (incoming_->header->has_begin()) ++begins_;
  }
  if (incoming_->header->has_begin()) {
    if (const Handled begun = HandleBegin(*incoming_); begun != Handled::kYes) return begun;
  }
  HandleRest(*incoming_);
  incoming_.reset();
  return Handled::kYes;
}

void ExecuteStreamCall::HandleHalfClose() {
  StreamState::Executions executions;
  {
    const absl::MutexLock lock(&mutex_);
    executions = state_.open();
  }
  for (const auto& execution : executions) {
    executor_.EndInputs(execution, "The stream was half-closed");
  }
  const absl::MutexLock lock(&mutex_);
  state_.HalfCloseHandled();
}

// Tries the begin again soon, if nothing does before.
void ExecuteStreamCall::RetryLater() {
  timer_.Add(SteadyNow() + StreamState::kRetryInterval, [weak = weak_from_this()] {
    const std::shared_ptr<ExecuteStreamCall> call = weak.lock();
    if (call == nullptr) return;
    {
      const absl::MutexLock lock(&call->mutex_);
      call->state_.RetryLater();
    }
    call->Advance();
  });
}

absl::Status ExecuteStreamCall::Parse() {
  CountPayload(message_);
  ASSIGN_OR_RETURN(SplitMessage message, SplitMessage::Take(message_, PayloadKind::kChunks));
  Incoming& incoming = incoming_.emplace(std::move(message));
  if (incoming.header->ParseFromString(incoming.message.header())) return absl::OkStatus();
  incoming_.reset();
  return NotAProtobuf("ExecuteStreamRequest");
}

ExecuteStreamCall::Handled ExecuteStreamCall::HandleBegin(Incoming& incoming) {
  const uint64_t id = incoming.header->execution_id();
  if (const std::shared_ptr<Execution> twin = Find(id)) {
    executor_.Cancel(twin, InvalidField("execution_id",
                                        absl::StrCat("execution_id (", id,
                                                     ") is open on this stream already; neither of "
                                                     "the two is computed.")));
    const absl::MutexLock lock(&mutex_);
    state_.BegunAgain(id, twin);
    return Handled::kYes;
  }
  absl::Status decoded;
  if (!incoming.request.has_value()) {
    incoming.request.emplace(ExecutionRequest{.origin = OriginOf(id, incoming.arrived),
                                              .deadline = DeadlineOf(context_),
                                              .priority = incoming.header->begin().priority()});
    decoded = CatchOutOfMemory([&] { return Decode(incoming); });
    if (decoded.ok() && !incoming.request->has_program()) {
      MakeProgram(incoming);
      return Handled::kWaitsForProgram;
    }
  } else {
    const absl::MutexLock lock(&mutex_);
    if (made_.has_value()) decoded = *std::exchange(made_, std::nullopt);
    awaited_.reset();
  }
  ExecutionRequest& request = *incoming.request;
  if (decoded.ok() && !incoming.is_decoded) {
    decoded = CatchOutOfMemory([&] { return DecodeRest(incoming); });
  }
  if (!decoded.ok()) {
    CountFailure(request);
    Refuse(request.origin, nullptr, decoded, /*input_may_follow=*/true);
    return Handled::kYes;
  }
  StreamState::Room room = StreamState::Room::kFree;
  {
    const absl::MutexLock lock(&mutex_);
    room = state_.RoomFor(id);
  }
  if (room == StreamState::Room::kStreamEnds) return Handled::kYes;
  // Not earlier: the call would keep itself alive.
  request.on_ready = [call = shared_from_this(), id](const auto& execution) {
    call->Ready(id, execution);
  };
  // Of one that is late, the executor says so.
  absl::StatusOr<std::shared_ptr<Execution>> begun =
      room == StreamState::Room::kFree || request.deadline <= SteadyNow()
          ? executor_.Begin(request)
          : StreamIsFull(options_.max_executions);
  if (!begun.ok()) {
    request.on_ready = nullptr;
    if (MayWait(begun.status())) return Handled::kWaitsForRoom;
    CountFailure(request);
    Refuse(request.origin, request.desc(), begun.status(), /*input_may_follow=*/true);
    return Handled::kYes;
  }
  bool goes_on = false;
  {
    const absl::MutexLock lock(&mutex_);
    goes_on = state_.Begun(id, *begun, /*has_ended=*/!(*begun)->status().ok());
  }
  if (!goes_on) executor_.Cancel(*begun, CallerIsGone(context_));
  return Handled::kYes;
}

absl::Status ExecuteStreamCall::Decode(Incoming& incoming) {
  const v1::BeginExecution& begin = incoming.header->begin();
  ExecutionRequest& request = *incoming.request;
  if (begin.has_timeout()) {
    const absl::Duration timeout =
        absl::Seconds(begin.timeout().seconds()) + absl::Nanoseconds(begin.timeout().nanos());
    if (timeout <= absl::ZeroDuration()) {
      return InvalidField("begin.timeout",
                          absl::StrCat("begin.timeout (", absl::FormatDuration(timeout),
                                       ") is not longer than 0."));
    }
    request.deadline = std::min(request.deadline, incoming.arrived + timeout);
  }
  if (!begin.has_model()) {
    absl::StatusOr<OperatorDesc> desc = DecodeOperator(begin, incoming.message.model_file());
    if (!desc.ok()) return UnderPath("begin", desc.status());
    request.op = *std::move(desc);
    return absl::OkStatus();
  }
  incoming.wanted = std::make_shared<ProgramRequest>(models_, "begin");
  return incoming.wanted->DecodeModel(begin, incoming.message.model_file(), request);
}

absl::Status ExecuteStreamCall::DecodeRest(Incoming& incoming) {
  incoming.is_decoded = true;
  return UnderPath("begin", DecodeResident(ResidentFields(incoming.header->begin()), tensors_,
                                           *incoming.request));
}

// The message, and everything behind it, waits for the program.
void ExecuteStreamCall::MakeProgram(Incoming& incoming) {
  {
    const absl::MutexLock lock(&mutex_);
    awaited_ = incoming.wanted;
  }
  incoming.wanted->Make(executor_, *incoming.request,
                        [call = shared_from_this()](const absl::Status& made) {
                          {
                            const absl::MutexLock lock(&call->mutex_);
                            call->made_ = made;
                            call->state_.ProgramMade();
                          }
                          call->Advance();
                        });
}

void ExecuteStreamCall::Aborted(const absl::Status& why) {
  std::shared_ptr<ProgramRequest> awaited;
  {
    const absl::MutexLock lock(&mutex_);
    awaited = awaited_;
  }
  if (awaited != nullptr) awaited->Cancel(why);
}

bool ExecuteStreamCall::MayWait(const absl::Status& refusal) {
  if (!absl::IsResourceExhausted(refusal) || !IsRetryable(refusal)) return false;
  const absl::MutexLock lock(&mutex_);
  const StreamState::Executions open = state_.open();
  const bool progresses =
      std::any_of(open.begin(), open.end(), [](const auto& each) { return !each->uploading(); });
  return state_.MayWait(progresses, SteadyNow());
}

void ExecuteStreamCall::HandleRest(const Incoming& incoming) {
  const v1::ExecuteStreamRequest& header = *incoming.header;
  const std::shared_ptr<Execution> execution = Find(header.execution_id());
  if (execution == nullptr) {
    // It has ended, and so been answered; what says nothing new is no mistake then.
    const auto& chunks = incoming.message.chunks();
    const bool has_bytes = std::any_of(chunks.begin(), chunks.end(),
                                       [](const IncomingChunk& c) { return c.data.size() > 0; });
    if (header.has_begin() || header.has_cancel() || !has_bytes) return;
    {
      const absl::MutexLock lock(&mutex_);
      if (state_.IsAbandoned(header.execution_id())) return;
    }
    Refuse(OriginOf(header.execution_id(), incoming.arrived), nullptr,
           InvalidField(
               "execution_id",
               absl::StrCat("execution_id (", header.execution_id(),
                            ") is not open on this stream: no begin has come, or it has ended.")),
           /*input_may_follow=*/false);
    return;
  }
  size_t index = 0;
  for (const IncomingChunk& chunk : incoming.message.chunks()) {
    Receive(execution, chunk, absl::StrCat("chunks[", index++, "]"));
  }
  if (header.has_begin()) executor_.ReceiveNone(execution);
  if (header.end_of_inputs()) executor_.EndInputs(execution, "end_of_inputs came");
  if (header.has_cancel()) {
    executor_.Cancel(execution, absl::CancelledError("The caller cancelled the execution."));
  }
}

// Chunks refer to the inputs of the request.
void ExecuteStreamCall::Receive(const std::shared_ptr<Execution>& execution,
                                const IncomingChunk& chunk, const std::string& field) {
  IncomingChunk placed = chunk;
  if (const auto& model = execution->request().model; model != nullptr) {
    const size_t count = model->inputs.size();
    const uint32_t index = chunk.tensor_index;
    placed.tensor_index = index < count ? model->program_inputs[index] : RequestedModel::kInProgram;
    if (placed.tensor_index == RequestedModel::kInProgram) {
      const std::string path = absl::StrCat(field, ".tensor_index");
      const std::string why = index < count ? " is an input that has a value."
                                            : absl::StrCat(" is not below the number of inputs (",
                                                           count, ") of ", model->model->name, ".");
      executor_.Cancel(execution, InvalidField(path, absl::StrCat(path, " (", index, ")", why)));
      return;
    }
  }
  executor_.Receive(execution, placed, field);
}

void ExecuteStreamCall::Refuse(const RequestOrigin& origin, const OperatorDesc* desc,
                               const absl::Status& why, bool input_may_follow) {
  executor_.Refuse(origin, desc, why);
  {
    const absl::MutexLock lock(&mutex_);
    state_.Refused(origin.execution_id, why, input_may_follow);
  }
  Advance();
}

std::shared_ptr<Execution> ExecuteStreamCall::Find(uint64_t id) {
  const absl::MutexLock lock(&mutex_);
  return state_.Find(id);
}

void ExecuteStreamCall::Ready(uint64_t id, const std::shared_ptr<Execution>& execution) {
  const absl::Status status = execution->status();
  const bool input_may_follow = !status.ok() && !execution->uploaded();
  if (!status.ok()) CountFailure(execution->request());
  {
    const absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      state_.Ready(id, execution);
    } else {
      state_.Ended(id, *execution, status, input_may_follow);
    }
  }
  Advance();
}

}  // namespace opmill
