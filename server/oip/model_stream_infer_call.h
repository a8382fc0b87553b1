// One ModelStreamInfer call: many requests, answered in the order of their arrival.
#ifndef OPMILL_SERVER_OIP_MODEL_STREAM_INFER_CALL_H_
#define OPMILL_SERVER_OIP_MODEL_STREAM_INFER_CALL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/oip/infer_request.h"

namespace opmill::oip {

// Requests are computed concurrently. A request that fails is answered with an error message; the
// stream and the other requests continue. With `max_requests` unanswered requests, the stream is
// not read. The object keeps itself alive until the call is done and no execution can call it any
// more.
class ModelStreamInferCall final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public OpenCalls::Call,
      public std::enable_shared_from_this<ModelStreamInferCall> {
 public:
  // Creates the reactor for gRPC. `models` and `memory` must outlive the call.
  static ModelStreamInferCall* Start(grpc::CallbackServerContext& context, RequestOrigin origin,
                                     Executor& executor, OpenCalls& open_calls,
                                     const ModelTable& models, const SharedMemory& memory,
                                     uint32_t max_requests);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);

  bool is_stream() const override { return true; }
  void Drain() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    InferRequest request;
    absl::Time arrived;
    std::shared_ptr<Execution> execution;  // null if the request was refused
    absl::Status error;
    bool is_ready = false;
  };

  ModelStreamInferCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                       Executor& executor, OpenCalls& open_calls, const ModelTable& models,
                       const SharedMemory& memory, uint32_t max_requests);

  // Begins the request that was read.
  void Handle() ABSL_LOCKS_EXCLUDED(mutex_);
  void Ready(Entry& entry, const std::shared_ptr<Execution>& execution, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts what can be started: the next write, the next read, the end.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::CallbackServerContext& context_;
  Executor& executor_;
  OpenCalls& open_calls_;
  const ModelTable& models_;
  const SharedMemory& memory_;
  const uint32_t max_requests_;
  const RequestOrigin origin_;
  const absl::Time opened_at_ = absl::Now();

  grpc::ByteBuffer read_;     // of the read in flight, then of its handler
  grpc::ByteBuffer written_;  // of the write in flight

  absl::Mutex mutex_;
  std::deque<std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);  // unanswered
  std::shared_ptr<Entry> writing_ ABSL_GUARDED_BY(mutex_);  // of the write in flight, or null
  absl::Time writes_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;  // or handling what was read
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ModelStreamInferCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_MODEL_STREAM_INFER_CALL_H_
