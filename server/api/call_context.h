// What every call has to do with its context.
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

// Who calls; sends the caller's traceparent back with the answer's first bytes.
RequestOrigin BeginCall(absl::string_view rpc, grpc::CallbackServerContext& context,
                        const Access& access, Connections& connections);

// Metadata longer than any honest caller's, which gRPC 1.51 lets through in many frames.
absl::Status CheckMetadata(const grpc::CallbackServerContext& context);

// InfiniteFuture where the caller gave none.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context);

// Why the call was cancelled: its deadline, or its caller's will or end.
absl::Status CallerIsGone(const grpc::CallbackServerContext& context);

// Why a call ends whose caller sends no message, or lets no write through.
absl::Status NoMessage(absl::Duration timeout);
absl::Status ResultsAreNotRead(absl::Duration timeout);

absl::Status NotAProtobuf(absl::string_view message_type);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_CALL_CONTEXT_H_
