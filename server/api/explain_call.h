// One ExplainModel call.
#ifndef OPMILL_SERVER_API_EXPLAIN_CALL_H_
#define OPMILL_SERVER_API_EXPLAIN_CALL_H_

#include <atomic>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/engine/program_report.h"
#include "kernels/onnx/explain.h"
#include "opmill/v1/service.pb.h"
#include "server/api/program_request.h"
#include "server/api/unary_call.h"

namespace opmill {

// Makes the program, finds what became of its nodes, then compiles it or computes it once, as an
// execution of its caller.
class ExplainCall final : public UnaryCall {
 public:
  static ExplainCall* Start(const ServiceParts& parts, grpc::CallbackServerContext& context,
                            RequestOrigin origin, const grpc::ByteBuffer& request,
                            grpc::ByteBuffer& response);

  void OnCancel() override { Abort(absl::CancelledError("The caller cancelled the call.")); }
  void Abort(const absl::Status& why) override;

 private:
  // An execution that may be cancelled before it has begun. It outlives the call. Thread-safe.
  class Running {
   public:
    void Begun(Executor& executor, const std::shared_ptr<Execution>& execution)
        ABSL_LOCKS_EXCLUDED(mutex_);
    void Cancel(Executor& executor, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

   private:
    absl::Mutex mutex_;
    std::shared_ptr<Execution> execution_ ABSL_GUARDED_BY(mutex_);
    absl::Status cancelled_ ABSL_GUARDED_BY(mutex_);
  };

  ExplainCall(const ServiceParts& parts, RequestOrigin origin, absl::Time deadline,
              grpc::ByteBuffer& response);
  void Begin(const grpc::ByteBuffer& request);
  absl::Status Decode(const grpc::ByteBuffer& request);
  void Explain();
  void Compile();
  void Compiled(const absl::StatusOr<CachedOperator>& found);
  void Execute();
  void Executed(const std::shared_ptr<Execution>& execution);
  void SetResponse(v1::ExplainModelResponse response);
  void Refuse(const absl::Status& why);

  grpc::ByteBuffer& response_;
  ProgramRequest wanted_;
  ExecutionRequest request_;
  bool runs_ = false;
  std::shared_ptr<const RequestedModel> model_;
  std::shared_ptr<const onnx::Explanation> explained_;  // null for a model that is an operator
  std::shared_ptr<RunProfile> profile_ = std::make_shared<RunProfile>();
  const std::shared_ptr<Running> running_ = std::make_shared<Running>();
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXPLAIN_CALL_H_
