// W3C Trace Context: the identifier that the caller's tracing systems use for the call.
#ifndef OPMILL_SERVER_API_TRACE_CONTEXT_H_
#define OPMILL_SERVER_API_TRACE_CONTEXT_H_

#include "absl/strings/string_view.h"

namespace opmill {

inline constexpr char kTraceparent[] = "traceparent";

// True if `value` is a traceparent of version 00, or of a newer version that starts like one. Other
// values must be ignored.
bool IsTraceparent(absl::string_view value);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_TRACE_CONTEXT_H_
