// Traces calls and executions that have ended.
#ifndef OPMILL_SERVER_EXECUTION_TRACE_REPORT_H_
#define OPMILL_SERVER_EXECUTION_TRACE_REPORT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/execution/execution.h"
#include "server/traces/traces.h"

namespace opmill {

// A call that has ended now without an execution.
void TraceCall(const RequestOrigin& origin, const absl::Status& status, Traces& traces);

// An execution that has ended. `report` is its own. Its stages follow each other without gaps,
// except that it is compiled while its input arrives.
void TraceExecution(const Execution& execution, const Execution::Report& report,
                    uint64_t output_bytes, const absl::Status& status, Traces& traces);

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_TRACE_REPORT_H_
