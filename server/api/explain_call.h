// One ExplainModel call.
#ifndef OPMILL_SERVER_API_EXPLAIN_CALL_H_
#define OPMILL_SERVER_API_EXPLAIN_CALL_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/engine/program_report.h"
#include "kernels/onnx/explain.h"
#include "opmill/v1/service.pb.h"
#include "server/api/program_call.h"

namespace opmill {

// Makes the program, finds what became of its nodes, then compiles it or computes it once, as an
// execution of its caller.
class ExplainCall final : public ProgramCall {
 public:
  using ProgramCall::ProgramCall;

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

  absl::string_view message_type() const override { return "ExplainModelRequest"; }
  void Cancel(const absl::Status& why) override;
  absl::Status Decode(grpc::ByteBuffer& message) override;
  void HasProgram() override;
  void Compiled(const CachedOperator& found) override;
  void RefuseRequest(const absl::Status& why) override;
  void Execute();
  void Executed(const std::shared_ptr<Execution>& execution);
  grpc::ByteBuffer Encode(v1::ExplainModelResponse response) const;

  bool runs_ = false;
  std::shared_ptr<const RequestedModel> model_;
  std::shared_ptr<const onnx::Explanation> explained_;  // null for a model that is an operator
  std::shared_ptr<RunProfile> profile_ = std::make_shared<RunProfile>();
  const std::shared_ptr<Running> running_ = std::make_shared<Running>();
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_EXPLAIN_CALL_H_
