// What is known of a call that has ended, for the spans that are made of it.
#ifndef OPMILL_SERVER_TRACES_TRACED_CALL_H_
#define OPMILL_SERVER_TRACES_TRACED_CALL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/traces/trace_context.h"

namespace opmill {

inline constexpr size_t kUsualStages = 8;
// Longer texts of callers are cut.
inline constexpr size_t kMostTraceText = 400;

struct TracedStage {
  absl::string_view name;  // a string literal
  absl::Time begin;
  absl::Time end;
  uint64_t span = 0;  // 0: a new one
};

// What an execution adds to the span of its call.
struct TracedExecution {
  std::shared_ptr<const std::string> description;  // the operator as text, or the model's name
  std::string model_version;
  bool is_model = false;
  uint64_t id = 0;  // on its stream
  bool was_cached = false;
  uint32_t batch_size = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
};

// An HTTP request, whose span has that of the gRPC call it becomes among its children.
struct TracedHttp {
  std::string verb;         // empty without a route
  std::string path;         // of the request, cut
  absl::string_view route;  // of which the path is one; empty if it is none
  int status = 0;
};

// Times are those of SteadyNow().
struct TracedCall {
  TraceContext context;  // of the call's span
  uint64_t parent = 0;   // 0: none
  absl::string_view rpc;
  bool is_of_http = false;  // the gRPC call of an HTTP request
  std::string peer;
  std::string caller;
  absl::Time begin;
  absl::Time end;
  absl::Status status;
  absl::InlinedVector<TracedStage, kUsualStages> stages;  // the children
  std::optional<TracedExecution> execution;
  std::unique_ptr<const TracedHttp> http;  // null: a gRPC call

  TracedCall* next = nullptr;  // of the queue
};

}  // namespace opmill

#endif  // OPMILL_SERVER_TRACES_TRACED_CALL_H_
