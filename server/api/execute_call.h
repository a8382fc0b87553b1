// One Execute call: one request message, and as many response messages as the outputs need.
#ifndef OPMILL_SERVER_API_EXECUTE_CALL_H_
#define OPMILL_SERVER_API_EXECUTE_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/result_stream.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/shared_memory/shared_memory.h"

namespace opmill {

// The call starts with its headers, before its message arrives, so that a missing message is
// noticed (EndIfStalled). Deletes itself when the call is done.
class ExecuteCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public OpenCalls::Call {
 public:
  ExecuteCall(grpc::CallbackServerContext& context, RequestOrigin origin, Executor& executor,
              OpenCalls& open_calls, const SharedMemory& shared_memory, uint64_t max_chunk_bytes);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override;

  void Drain() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Execute() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call if its message has not come yet; false if it has.
  bool EndWithoutMessage(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ready(const std::shared_ptr<Execution>& execution) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  OpenCalls& open_calls_;
  const SharedMemory& shared_memory_;
  const uint64_t max_chunk_bytes_;
  RequestOrigin origin_;      // moved into the execution
  grpc::ByteBuffer request_;  // owned by the read, then by its handler

  std::vector<SharedRange> shared_outputs_;  // empty: the outputs are sent
  std::optional<ResultStream> results_;      // gRPC orders the reactions, so one thread at a time
  grpc::ByteBuffer message_;                 // the same

  absl::Mutex mutex_;
  std::shared_ptr<Execution> execution_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);  // why it was aborted before the execution began
  bool waits_for_message_ ABSL_GUARDED_BY(mutex_) = true;
  // Since when the call has waited for the caller to send or to read; otherwise InfiniteFuture.
  absl::Time waits_since_ ABSL_GUARDED_BY(mutex_) = absl::Now();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXECUTE_CALL_H_
