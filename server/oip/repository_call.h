// RepositoryModelLoad and RepositoryModelUnload calls.
#ifndef OPMILL_SERVER_OIP_REPOSITORY_CALL_H_
#define OPMILL_SERVER_OIP_REPOSITORY_CALL_H_

#include <atomic>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/unary_call.h"
#include "server/models/model_repository.h"

namespace opmill::oip {

// Waits for its turn on the thread of the repository, which also decodes its message: of the
// messages of many calls, which may be long, one at a time is decoded. A load that has started runs
// to its end, and a draining server waits for it; one that is still queued is dropped if its caller
// is gone.
class RepositoryCall final : public UnaryCall {
 public:
  enum class Kind { kLoad, kUnload };

  // All references must outlive the call; gRPC owns message and response.
  static RepositoryCall* Start(Kind kind, const ServiceParts& parts, ModelRepository& repository,
                               RequestOrigin origin, const grpc::ByteBuffer& message);

  void OnCancel() override { cancelled_ = true; }
  void Abort(const absl::Status&) override { cancelled_ = true; }

 private:
  RepositoryCall(Kind kind, const ServiceParts& parts, ModelRepository& repository,
                 RequestOrigin origin, const grpc::ByteBuffer& message);
  absl::Status Run();

  const Kind kind_;
  ModelRepository& repository_;
  const RequestOrigin origin_;
  const grpc::ByteBuffer& message_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace opmill::oip

#endif  // OPMILL_SERVER_OIP_REPOSITORY_CALL_H_
