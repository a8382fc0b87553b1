// Counts, logs and traces how executions end, and which requests are refused.
#ifndef OPMILL_SERVER_EXECUTION_END_REPORT_H_
#define OPMILL_SERVER_EXECUTION_END_REPORT_H_

#include "absl/status/status.h"
#include "server/execution/execution.h"
#include "server/observe/statistics.h"
#include "server/traces/traces.h"

namespace opmill {

// `execution` has ended with `status`. `traces` is null if no call is traced.
void ReportEnd(const Execution& execution, const absl::Status& status, Statistics& statistics,
               Traces* traces);

// A request that did not become an execution; without a descriptor, one that could not be read.
void ReportRefusal(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why,
                   Statistics& statistics, Traces* traces);

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_END_REPORT_H_
