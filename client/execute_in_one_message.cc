#include "client/execute_in_one_message.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/error.h"
#include "client/grpc_conversions.h"
#include "client/output_receiver.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/errors.h"
#include "proto/payload.h"

namespace opmill {
namespace {

constexpr char kExecuteMethod[] = "/opmill.v1.OperatorService/Execute";

// A call that blocks the caller's thread at each step.
class BlockingCall {
 public:
  BlockingCall(grpc::GenericStub& stub, absl::Duration timeout, const std::string& token,
               const std::string& traceparent) {
    Prepare(context_, timeout, token, traceparent);
    call_ = stub.PrepareCall(&context_, kExecuteMethod, &queue_);
    call_->StartCall(nullptr);
    Await();
  }
  ~BlockingCall() {
    queue_.Shutdown();
    while (Await()) {
    }
  }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  void WriteLast(const grpc::ByteBuffer& message) {
    call_->WriteLast(message, grpc::WriteOptions(), nullptr);
    Await();
  }
  bool Read(grpc::ByteBuffer& message) {
    call_->Read(&message, nullptr);
    return Await();
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Await();
    return status;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

absl::Status Receive(const grpc::ByteBuffer& bytes, bool are_outputs_shared,
                     OutputReceiver& receiver, std::optional<v1::ExecutionStatistics>& statistics) {
  const absl::StatusOr<SplitMessage> message = SplitMessage::Split(bytes, PayloadKind::kChunks);
  v1::ExecuteResponse response;
  if (!message.ok() || !response.ParseFromString(message->header())) {
    return absl::InternalError("The server sent a message that is not an ExecuteResponse.");
  }
  if (response.has_started()) {
    RETURN_IF_ERROR(receiver.Start(response.started()));
  }
  absl::Status status = receiver.Write(message->chunks());
  if (!status.ok() || !response.has_statistics()) return status;
  statistics = std::move(*response.mutable_statistics());
  return are_outputs_shared ? absl::OkStatus() : receiver.End();
}

}  // namespace

absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(
    grpc::GenericStub& stub, const v1::ExecuteRequest& request, absl::Span<const InputBytes> inputs,
    OutputSink& sink, absl::Duration timeout, const std::string& token,
    const std::string& traceparent) {
  BlockingCall call(stub, timeout, token, traceparent);
  {
    std::vector<grpc::Slice> slices;
    for (const InputBytes& input : inputs) slices.push_back(SliceOf(input, 0, input.size));
    call.WriteLast(JoinInputs(request, std::move(slices)));
  }
  OutputReceiver receiver(sink);
  std::optional<v1::ExecutionStatistics> statistics;
  absl::Status failure;
  grpc::ByteBuffer bytes;
  while (failure.ok() && call.Read(bytes)) {
    failure = Receive(bytes, request.shared_outputs_size() > 0, receiver, statistics);
  }
  if (!failure.ok()) call.Cancel();
  absl::Status status = FromGrpcStatus(call.Finish());
  if (!failure.ok()) return failure;
  if (!status.ok()) return status;
  if (!statistics) return absl::InternalError("The server ended a response before its statistics.");
  return *std::move(statistics);
}

}  // namespace opmill
