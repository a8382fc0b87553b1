#include "server/api/call_context.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/steady_time.h"
#include "server/access/forwarding.h"
#include "server/traces/trace_context.h"

namespace opmill {
namespace {

constexpr size_t kMostMetadataBytes = 16384;
// The overhead per field that HTTP/2 counts (RFC 9113, 6.5.2): short fields use more memory than
// their bytes.
constexpr size_t kBytesBesideEntry = 32;

}  // namespace

RequestOrigin BeginCall(absl::string_view rpc, grpc::CallbackServerContext& context,
                        const Access& access, Connections& connections) {
  RequestOrigin origin{.rpc = rpc};
  if (std::optional<ForwardedCaller> forwarded = access.forwarding().Find(context)) {
    origin.is_http = true;
    origin.peer = std::move(forwarded->peer);
    origin.caller = std::move(forwarded->name);
  } else {
    origin.peer = context.peer();
    origin.caller = access.CallerOf(context);
    origin.connection = connections.Find(origin.peer);
    if (absl::StartsWith(origin.peer, "unix")) origin.user = connections.UnixUser();
  }
  const auto found = context.client_metadata().find(kTraceparent);
  if (found == context.client_metadata().end()) return origin;
  const absl::string_view traceparent(found->second.data(), found->second.size());
  if (!IsTraceparent(traceparent)) return origin;
  origin.traceparent = std::string(traceparent);
  context.AddInitialMetadata(kTraceparent, origin.traceparent);
  return origin;
}

absl::Status CheckMetadata(const grpc::CallbackServerContext& context) {
  size_t bytes = 0;
  for (const auto& [key, value] : context.client_metadata()) {
    bytes += key.size() + value.size() + kBytesBesideEntry;
  }
  if (bytes <= kMostMetadataBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("The metadata of the call has ", bytes, " bytes, with ", kBytesBesideEntry,
                   " for each field; at most ", kMostMetadataBytes, " are taken."));
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  // gRPC has just converted it with this clock. absl::Now() takes seconds to follow when it is set.
  return SteadyNow() + absl::FromChrono(deadline - std::chrono::system_clock::now());
}

absl::Status CallerIsGone(const grpc::CallbackServerContext& context) {
  if (DeadlineOf(context) <= SteadyNow()) {
    return absl::DeadlineExceededError("The deadline of the call has passed.");
  }
  return absl::CancelledError("The caller cancelled the call or is gone.");
}

absl::Status NoMessage(absl::Duration timeout) {
  return absl::DeadlineExceededError(absl::StrCat(
      "The caller has sent no message for ", absl::FormatDuration(timeout), " (stall_timeout)."));
}

absl::Status ResultsAreNotRead(absl::Duration timeout) {
  return absl::DeadlineExceededError(absl::StrCat("The caller has read none of its results for ",
                                                  absl::FormatDuration(timeout),
                                                  " (stall_timeout)."));
}

absl::Status NotAProtobuf(absl::string_view message_type) {
  return absl::InvalidArgumentError(
      absl::StrCat("The message is not a protobuf message of the type ", message_type, "."));
}

}  // namespace opmill
