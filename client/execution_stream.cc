#include "client/execution_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "client/grpc_conversions.h"
#include "client/output_receiver.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"
#include "proto/duration.h"
#include "proto/payload.h"

namespace opmill {
namespace {

constexpr char kStreamMethod[] = "/opmill.v1.OperatorService/ExecuteStream";

struct Execution {
  Execution(OutputSink& sink, ExecutionStream::Done execution_done)
      : receiver(sink), done(std::move(execution_done)) {}

  v1::ExecuteStreamRequest begin;  // sent with the first chunk
  std::vector<InputBytes> inputs;
  size_t next_input = 0;   // the next chunk is from this input,
  size_t next_offset = 0;  // at this offset
  size_t sent_bytes = 0;   // of all inputs
  bool is_begun = false;
  std::function<void(uint64_t)> progress;
  OutputReceiver receiver;  // used by the reading thread alone
  ExecutionStream::Done done;
};

}  // namespace

// Messages are read one after the other in OnReadDone, so executions end there, or in OnDone after
// it. WriteNext starts the write of one message, whose OnWriteDone calls WriteNext again. The
// following message is prepared in advance: it is then certain to be sent, and gRPC may put both
// into one packet. `hold_` delays OnDone while Begin may still write.
class ExecutionStream::Call : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Call(grpc::GenericStub& stub, const Options& options) : chunk_bytes_(options.chunk_bytes) {
    Prepare(context_, options.timeout, options.token, options.traceparent);
    stub.PrepareBidiStreamingCall(&context_, kStreamMethod, {}, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  uint64_t Begin(std::shared_ptr<Execution> execution) {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t id = ++last_id_;
    if (reads_ended_ || is_finishing_) {
      const absl::Status status =
          reads_ended_
              ? absl::UnavailableError("The stream has ended.")
              : absl::FailedPreconditionError("Finish was called; no execution can begin.");
      lock.unlock();
      execution->done(status);
      return id;
    }
    execution->begin.set_execution_id(id);
    executions_[id] = std::move(execution);
    uploads_.push_back(id);
    WriteNext(lock);
    return id;
  }

  void Cancel(uint64_t id) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto found = executions_.find(id);
    if (found == executions_.end()) return;
    if (found->second->is_begun) {
      cancellations_.push_back(id);
      return WriteNext(lock);
    }
    // The server does not know it yet.
    const std::shared_ptr<Execution> execution = std::move(found->second);
    executions_.erase(found);
    WriteNext(lock);
    execution->done(absl::CancelledError("The execution was cancelled before it began."));
  }

  absl::Status Finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_finishing_ = true;
    WriteNext(lock);
    lock.lock();
    ended_.wait(lock, [&] { return is_done_; });
    return status_;
  }

  void Abort() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (is_done_) return;
      is_aborted_ = true;
    }
    context_.TryCancel();
    std::ignore = Finish();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      std::unique_lock<std::mutex> lock(mutex_);
      reads_ended_ = true;
      ReleaseHold(lock);
      return;
    }
    Receive();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool) override {
    // No other thread accesses it before GoOn.
    if (written_.of && written_.of->progress) written_.of->progress(written_.sent_bytes);
    written_ = {};
    GoOn();
  }

  void OnWritesDoneDone(bool) override { GoOn(); }

  void OnDone(const grpc::Status& status) override {
    std::map<uint64_t, std::shared_ptr<Execution>> left;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      left.swap(executions_);
      next_.reset();
      if (is_aborted_) failure_ = absl::CancelledError("The stream was abandoned.");
    }
    absl::Status end = failure_.ok() ? FromGrpcStatus(status) : failure_;
    const absl::Status lost =
        end.ok() ? absl::InternalError("The server closed the stream before the execution's end.")
                 : end;
    for (auto& [id, execution] : left) execution->done(lost);

    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(end);
    is_done_ = true;
    ended_.notify_all();
  }

 private:
  void GoOn() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_writing_ = false;
    if (reads_ended_) {
      ReleaseHold(lock);
    } else {
      WriteNext(lock);
    }
  }

  struct Message {
    grpc::ByteBuffer bytes;
    std::shared_ptr<Execution> of;  // the owner of the chunks
    size_t sent_bytes = 0;          // of its inputs, including these chunks
  };

  // Unlocks, because gRPC may release the caller's memory before StartWrite returns.
  void WriteNext(std::unique_lock<std::mutex>& lock) {
    if (is_writing_ || writes_done_ || reads_ended_) return lock.unlock();
    if (!next_.has_value()) next_ = MakeMessage();
    if (next_.has_value()) {
      written_ = *std::move(next_);
      next_ = MakeMessage();
      is_writing_ = true;
      grpc::WriteOptions options;
      if (next_.has_value()) options.set_buffer_hint();
      lock.unlock();
      return StartWrite(&written_.bytes, options);
    }
    // After the half-close nothing can be cancelled, so it waits for the last execution.
    if (!is_finishing_ || !executions_.empty()) return lock.unlock();
    writes_done_ = true;
    is_writing_ = true;
    lock.unlock();
    StartWritesDone();
  }

  // Requires the lock, like the next function.
  std::optional<Message> MakeMessage() {
    if (!cancellations_.empty()) {
      v1::ExecuteStreamRequest request;
      request.set_execution_id(cancellations_.front());
      request.mutable_cancel();
      cancellations_.pop_front();
      return Message{.bytes = JoinChunks(request, {})};
    }
    while (!uploads_.empty()) {
      const uint64_t id = uploads_.front();
      uploads_.pop_front();
      const auto found = executions_.find(id);
      if (found == executions_.end()) continue;  // the server ended it before its last byte
      const std::shared_ptr<Execution>& execution = found->second;
      const grpc::ByteBuffer bytes = NextChunks(*execution);
      if (execution->next_input < execution->inputs.size()) uploads_.push_back(id);
      return Message{.bytes = bytes, .of = execution, .sent_bytes = execution->sent_bytes};
    }
    return std::nullopt;
  }

  // As many chunks as fit into a message: the rest of an input, then the next input.
  grpc::ByteBuffer NextChunks(Execution& execution) const {
    v1::ExecuteStreamRequest request;
    if (execution.is_begun) {
      request.set_execution_id(execution.begin.execution_id());
    } else {
      request.Swap(&execution.begin);
      execution.begin.set_execution_id(request.execution_id());
      execution.is_begun = true;
    }
    std::vector<OutgoingChunk> chunks;
    size_t room = chunk_bytes_;
    while (execution.next_input < execution.inputs.size()) {
      const InputBytes& input = execution.inputs[execution.next_input];
      const size_t count = std::min(room, input.size - execution.next_offset);
      if (count > 0) {
        chunks.push_back({.tensor_index = static_cast<uint32_t>(execution.next_input),
                          .offset = execution.next_offset,
                          .data = SliceOf(input, execution.next_offset, count)});
      }
      room -= count;
      execution.next_offset += count;
      execution.sent_bytes += count;
      if (execution.next_offset < input.size) break;
      ++execution.next_input;
      execution.next_offset = 0;
    }
    request.set_end_of_inputs(execution.next_input == execution.inputs.size());
    return JoinChunks(request, std::move(chunks));
  }

  void ReleaseHold(std::unique_lock<std::mutex>& lock) {
    const bool release = hold_ && !is_writing_;
    if (release) hold_ = false;
    lock.unlock();
    if (release) RemoveHold();
  }

  void Receive() {
    const absl::StatusOr<SplitMessage> message =
        SplitMessage::Split(incoming_, PayloadKind::kChunks);
    v1::ExecuteStreamResponse response;
    if (!message.ok() || !response.ParseFromString(message->header())) {
      failure_ =
          absl::InternalError("The server sent a message that is not an ExecuteStreamResponse.");
      context_.TryCancel();
      return;
    }
    std::shared_ptr<Execution> execution;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = executions_.find(response.execution_id());
      if (found == executions_.end()) return;  // already ended by an error of its sink
      execution = found->second;
    }
    absl::Status status;
    if (response.has_started()) status = execution->receiver.Start(response.started());
    if (status.ok()) status = execution->receiver.Write(message->chunks());
    if (status.ok() && response.has_statistics()) status = execution->receiver.End();
    if (!status.ok()) {
      Cancel(response.execution_id());
    } else if (response.has_status()) {
      status = FromRpcStatus(response.status());
      if (status.ok()) status = absl::InternalError("The server failed an execution with OK.");
    } else if (!response.has_statistics()) {
      return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    executions_.erase(response.execution_id());
    WriteNext(lock);
    if (status.ok()) {
      execution->done(response.statistics());
    } else {
      execution->done(status);
    }
  }

  const size_t chunk_bytes_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;
  absl::Status failure_;  // used by the reading thread
  Message written_;       // used by the writing thread

  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<uint64_t, std::shared_ptr<Execution>> executions_;
  std::deque<uint64_t> uploads_;  // unique; executions with bytes to send
  std::deque<uint64_t> cancellations_;
  std::optional<Message> next_;
  uint64_t last_id_ = 0;
  bool is_writing_ = false;
  bool is_finishing_ = false;
  bool writes_done_ = false;
  bool reads_ended_ = false;
  bool hold_ = true;
  bool is_aborted_ = false;
  bool is_done_ = false;
  absl::Status status_;
};

ExecutionStream::ExecutionStream(grpc::GenericStub& stub, const Options& options)
    : call_(std::make_unique<Call>(stub, options)) {}

ExecutionStream::~ExecutionStream() { call_->Abort(); }

uint64_t ExecutionStream::Begin(const Computation& computation, InputBytes input, OutputSink& sink,
                                Done done, const ExecutionOptions& options) {
  return Begin(computation, std::vector<InputBytes>{std::move(input)}, sink, std::move(done),
               options);
}

uint64_t ExecutionStream::Begin(const Computation& computation, std::vector<InputBytes> inputs,
                                OutputSink& sink, Done done, const ExecutionOptions& options) {
  auto execution = std::make_shared<Execution>(sink, std::move(done));
  v1::BeginExecution& begin = *execution->begin.mutable_begin();
  SetComputation(computation, begin);
  SetOptions(options, begin);
  if (options.timeout != absl::InfiniteDuration()) {
    EncodeDuration(options.timeout, *begin.mutable_timeout());
  }
  execution->inputs = std::move(inputs);
  execution->progress = options.progress;
  return call_->Begin(std::move(execution));
}

void ExecutionStream::Cancel(uint64_t execution_id) { call_->Cancel(execution_id); }

absl::Status ExecutionStream::Finish() { return call_->Finish(); }

}  // namespace opmill
