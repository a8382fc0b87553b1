// One Execute call: the input in one message, the outputs in as many as they need.
#ifndef OPMILL_SERVER_EXECUTE_CALL_H_
#define OPMILL_SERVER_EXECUTE_CALL_H_

#include <memory>
#include <mutex>
#include <optional>

#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/executor.h"
#include "server/open_calls.h"
#include "server/result_stream.h"

namespace opmill {

// Deletes itself when the call is done.
class ExecuteCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                          public OpenCalls::Call {
 public:
  ExecuteCall(grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
              RequestOrigin origin, Executor& executor, OpenCalls& open_calls,
              uint64_t max_chunk_bytes);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void Abort(const absl::Status& why) override;
  void EndIfStalled(absl::Time now, absl::Duration timeout) override;

 private:
  absl::Status Start(const grpc::ByteBuffer& request, RequestOrigin origin);
  void WriteNext();

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  OpenCalls& open_calls_;
  const uint64_t max_chunk_bytes_;

  std::optional<ResultStream> results_;  // of one thread at a time, by the order of reactions
  grpc::ByteBuffer message_;             // likewise

  std::mutex mutex_;  // of all below
  std::shared_ptr<Execution> execution_;
  absl::Status aborted_;  // why, where it was before there was an execution
  // The start of the write in flight.
  absl::Time written_at_ = absl::InfiniteFuture();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTE_CALL_H_
