// One ModelStreamInfer call: many requests, answered in the order of their arrival.
#ifndef OPMILL_SERVER_OIP_MODEL_STREAM_INFER_CALL_H_
#define OPMILL_SERVER_OIP_MODEL_STREAM_INFER_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/stream_call.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/oip/infer_request.h"
#include "server/oip/infer_stream_state.h"

namespace opmill::oip {

// A request that fails is answered with an error message; the stream and the other requests
// continue. InferStreamState decides what is done.
class ModelStreamInferCall final : public StreamCall<InferStreamState>,
                                   public std::enable_shared_from_this<ModelStreamInferCall> {
 public:
  // Creates the reactor for gRPC. `models`, `programs` and `memory` must outlive the call.
  static ModelStreamInferCall* Start(grpc::CallbackServerContext& context, RequestOrigin origin,
                                     Executor& executor, OpenCalls& open_calls,
                                     const ModelTable& models, ModelPrograms& programs,
                                     const TensorPlaces& places, uint32_t max_requests);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void EndIfStalled(absl::Time now, absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ModelStreamInferCall(grpc::CallbackServerContext& context, RequestOrigin origin,
                       Executor& executor, OpenCalls& open_calls, const ModelTable& models,
                       ModelPrograms& programs, const TensorPlaces& places, uint32_t max_requests);

  void Aborted(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Advance() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(const InferStreamState::Answer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins or refuses the request that was read, possibly later, when its program has been made.
  void HandleRequest() ABSL_LOCKS_EXCLUDED(mutex_);
  // `decoded`: why the request is refused.
  void Decoded(uint64_t number, const std::shared_ptr<InferRequest>& request,
               ExecutionRequest& begin, absl::Status decoded) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Begin(uint64_t number, const std::shared_ptr<InferRequest>& request,
                     ExecutionRequest& begin) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ready(uint64_t number, const std::shared_ptr<Execution>& execution,
             const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);

  const ModelTable& models_;
  ModelPrograms& programs_;
  const TensorPlaces places_;
  std::shared_ptr<InferRequest> handled_ ABSL_GUARDED_BY(mutex_);  // null if none is
  grpc::ByteBuffer read_;  // of the read in flight, then of its handler
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_MODEL_STREAM_INFER_CALL_H_
