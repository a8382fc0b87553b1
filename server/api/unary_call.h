// Unary calls that end on another thread than they begin on.
#ifndef OPMILL_SERVER_API_UNARY_CALL_H_
#define OPMILL_SERVER_API_UNARY_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "server/api/grpc_status.h"
#include "server/api/service_parts.h"
#include "server/execution/open_calls.h"

namespace opmill {

// Deletes itself when the call is done.
class UnaryCall : public grpc::ServerUnaryReactor, public OpenCalls::Call {
 public:
  void OnDone() final {
    parts_.open_calls.Remove(*this);
    delete this;
  }

 protected:
  explicit UnaryCall(const ServiceParts& parts) : parts_(parts) {}
  // To be called once the whole object is constructed: it may be aborted from then on.
  void Open() { parts_.open_calls.Add(*this); }
  // Logs the end, too.
  void End(const RequestOrigin& origin, const absl::Status& status) {
    LogAnswer(parts_, origin, status);
    Finish(ToGrpcStatus(status));
  }

  const ServiceParts& parts_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_API_UNARY_CALL_H_
