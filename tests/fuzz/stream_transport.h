// Replaces gRPC for one ExecuteStream call: reads and writes that the call starts wait until the
// test completes them.
#ifndef OPMILL_TESTS_FUZZ_STREAM_TRANSPORT_H_
#define OPMILL_TESTS_FUZZ_STREAM_TRANSPORT_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/api/execute_stream_call.h"

namespace opmill {

// Driven by one thread, on which the call gets all its reactions.
class StreamTransport
    : public grpc::ServerCallbackReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit StreamTransport(std::function<void(const grpc::ByteBuffer&)> on_message)
      : on_message_(std::move(on_message)) {}

  void Bind(ExecuteStreamCall* call);

  // Waits until the call reads, and delivers the message. Meanwhile completes writes, unless the
  // caller is a slow reader. Returns false if the call has ended, or does not read while its writes
  // are held.
  bool Deliver(const grpc::ByteBuffer& message);
  // Half-closes the caller's side.
  void HalfClose();
  void EndWrite();
  void Cancel();
  // Completes reads and writes until the call has ended, and returns its status.
  grpc::Status Finish();

  void set_slow_reader(bool slow) { slow_reader_ = slow; }
  bool half_closed() const { return half_closed_; }
  bool cancelled() const { return cancelled_; }

  void Finish(grpc::Status status) override;
  void SendInitialMetadata() override {}
  void Read(grpc::ByteBuffer* target) override;
  void Write(const grpc::ByteBuffer* message, grpc::WriteOptions options) override;
  void WriteAndFinish(const grpc::ByteBuffer* message, grpc::WriteOptions options,
                      grpc::Status status) override;

 private:
  grpc::internal::ServerReactor* reactor() override { return call_; }
  void CallOnDone() override {}

  // Waits until the condition holds under the lock. Meanwhile completes writes unless they are
  // held.
  bool WaitFor(const std::function<bool()>& condition, bool ends_writes);
  bool TryEndWrite();

  const std::function<void(const grpc::ByteBuffer&)> on_message_;
  ExecuteStreamCall* call_ = nullptr;
  bool slow_reader_ = false;
  bool half_closed_ = false;
  bool cancelled_ = false;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  grpc::ByteBuffer* read_ = nullptr;
  std::optional<grpc::ByteBuffer> write_;
  std::optional<grpc::Status> status_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_FUZZ_STREAM_TRANSPORT_H_
