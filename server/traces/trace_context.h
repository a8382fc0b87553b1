// W3C Trace Context: how calls name the trace that they belong to.
#ifndef OPMILL_SERVER_TRACES_TRACE_CONTEXT_H_
#define OPMILL_SERVER_TRACES_TRACE_CONTEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace opmill {

inline constexpr char kTraceparent[] = "traceparent";

struct TraceContext {
  // The two halves of the trace's id, of which one at least is not 0.
  uint64_t trace_high = 0;
  uint64_t trace_low = 0;
  uint64_t span = 0;  // 0: the trace has no span yet
  bool is_sampled = false;
};

// Reads a traceparent of version 00, or of a newer version that starts like one. Other values must
// be ignored.
std::optional<TraceContext> ReadTraceparent(absl::string_view value);
inline bool IsTraceparent(absl::string_view value) { return ReadTraceparent(value).has_value(); }

// `context` has a span.
std::string TraceparentOf(const TraceContext& context);

// Random, and not 0.
uint64_t NewSpanId();
// With a random id, and without a span.
TraceContext NewTrace();
// True with this probability.
bool Happens(double probability);

}  // namespace opmill

#endif  // OPMILL_SERVER_TRACES_TRACE_CONTEXT_H_
