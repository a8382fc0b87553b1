// One ExecuteStream call: many concurrent executions, each with its own end.
#ifndef OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
#define OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/base/steady_time.h"
#include "opmill/v1/service.pb.h"
#include "proto/payload.h"
#include "proto/stack_message.h"
#include "server/api/program_request.h"
#include "server/api/stream_call.h"
#include "server/api/stream_state.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/host/deadline_timer.h"

namespace opmill {

struct ExecuteStreamOptions {
  uint64_t max_chunk_bytes = 0;
  uint32_t max_executions = 0;
};

// Decodes messages and encodes results. StreamState decides what is done.
class ExecuteStreamCall final : public StreamCall<StreamState>,
                                public std::enable_shared_from_this<ExecuteStreamCall> {
 public:
  // Creates the reactor for gRPC.
  static ExecuteStreamCall* Start(grpc::CallbackServerContext& context, RequestOrigin origin,
                                  Executor& executor, OpenCalls& open_calls,
                                  const ModelSources& models, TensorStore& tensors,
                                  DeadlineTimer& timer, const ExecuteStreamOptions& options);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Incoming {
    explicit Incoming(SplitMessage split) : message(std::move(split)) {}

    StackMessage<v1::ExecuteStreamRequest> header;
    SplitMessage message;
    absl::Time arrived = SteadyNow();
    // Of its begin.
    std::optional<ExecutionRequest> request;
    std::shared_ptr<ProgramRequest> wanted;
    bool is_decoded = false;
  };
  enum class Handled { kYes, kWaitsForRoom, kWaitsForProgram };

  ExecuteStreamCall(grpc::CallbackServerContext& context, RequestOrigin origin, Executor& executor,
                    OpenCalls& open_calls, const ModelSources& models, TensorStore& tensors,
                    DeadlineTimer& timer, const ExecuteStreamOptions& options);

  // `reads_ahead` is set on gRPC's threads only: the thread that handles a message also handles the
  // next ones if they arrive in time. Threads of the device have other work.
  void AdvanceWith(bool reads_ahead) ABSL_LOCKS_EXCLUDED(mutex_);
  void Advance() override ABSL_LOCKS_EXCLUDED(mutex_) { AdvanceWith(/*reads_ahead=*/false); }
  StreamState::Work Step(bool reads_ahead) ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(StreamState::Reply reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // On the thread to which Step gave the work.
  void HandleMessage() ABSL_LOCKS_EXCLUDED(mutex_);
  Handled TryHandleMessage() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleHalfClose() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Parse();  // message_ into incoming_
  Handled HandleBegin(Incoming& incoming) ABSL_LOCKS_EXCLUDED(mutex_);
  // Completes the request of the begin. Without a program, MakeProgram follows.
  absl::Status Decode(Incoming& incoming);
  // What follows from the program. To be called once.
  absl::Status DecodeRest(Incoming& incoming);
  void MakeProgram(Incoming& incoming) ABSL_LOCKS_EXCLUDED(mutex_);
  void Aborted(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleRest(const Incoming& incoming) ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayWait(const absl::Status& refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  void Receive(const std::shared_ptr<Execution>& execution, const IncomingChunk& chunk,
               const std::string& field);
  void Refuse(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why,
              bool input_may_follow) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Execution> Find(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void RetryLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Ready(uint64_t id, const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);

  const ModelSources models_;
  TensorStore& tensors_;
  DeadlineTimer& timer_;
  const ExecuteStreamOptions options_;

  // Of the handling thread.
  grpc::ByteBuffer message_;
  std::optional<Incoming> incoming_;  // that message, or the one whose begin waits
  uint64_t begins_ = 0;               // begins received

  grpc::ByteBuffer read_ ABSL_GUARDED_BY(mutex_);  // owned by gRPC during a read
  // Of the begin that waits for its program: what it wants, and how that has ended.
  std::shared_ptr<ProgramRequest> awaited_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXECUTE_STREAM_CALL_H_
