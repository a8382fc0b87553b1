// The RPC Execute: a request in one message, its response in chunks.
#ifndef OPMILL_CLIENT_EXECUTE_IN_ONE_MESSAGE_H_
#define OPMILL_CLIENT_EXECUTE_IN_ONE_MESSAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/execution.h"
#include "grpcpp/generic/generic_stub.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// `request` must not contain the inputs. The sink learns of outputs in shared memory, but does not
// receive their bytes.
absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(
    grpc::GenericStub& stub, const v1::ExecuteRequest& request, absl::Span<const InputBytes> inputs,
    OutputSink& sink, absl::Duration timeout, const std::string& token,
    const std::string& traceparent);

}  // namespace opmill

#endif  // OPMILL_CLIENT_EXECUTE_IN_ONE_MESSAGE_H_
