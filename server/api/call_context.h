// Helpers for the gRPC context, shared by all calls.
#ifndef OPMILL_SERVER_API_CALL_CONTEXT_H_
#define OPMILL_SERVER_API_CALL_CONTEXT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/access/access.h"
#include "server/execution/execution.h"
#include "server/network/connections.h"

namespace opmill {

// Identifies the caller, and returns the caller's traceparent in the initial metadata.
RequestOrigin BeginCall(absl::string_view rpc, grpc::CallbackServerContext& context,
                        const Access& access, Connections& connections);

// Returns an error if the metadata is unreasonably long, which gRPC 1.51 allows if it comes in many
// frames.
absl::Status CheckMetadata(const grpc::CallbackServerContext& context);

// InfiniteFuture if the caller set no deadline.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context);

// Why the call was cancelled: its deadline passed, or the caller cancelled or disconnected.
absl::Status CallerIsGone(const grpc::CallbackServerContext& context);

// The errors for a caller that sends no message, or does not read its results, for `timeout`.
absl::Status NoMessage(absl::Duration timeout);
absl::Status ResultsAreNotRead(absl::Duration timeout);

absl::Status NotAProtobuf(absl::string_view message_type);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_CALL_CONTEXT_H_
