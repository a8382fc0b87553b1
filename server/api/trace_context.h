// W3C Trace Context: the identifier by which a caller's systems know the call.
#ifndef OPMILL_SERVER_API_TRACE_CONTEXT_H_
#define OPMILL_SERVER_API_TRACE_CONTEXT_H_

#include "absl/strings/string_view.h"

namespace opmill {

inline constexpr char kTraceparent[] = "traceparent";

// Is it a traceparent of version 00, or begins like one where its version is newer? Those that
// are not are to be ignored.
bool IsTraceparent(absl::string_view value);

}  // namespace opmill

#endif  // OPMILL_SERVER_API_TRACE_CONTEXT_H_
