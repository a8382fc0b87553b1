#include "server/execution/end_report.h"

#include "absl/time/time.h"
#include "kernels/base/steady_time.h"
#include "kernels/descriptor/operator_desc.h"
#include "server/execution/trace_report.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

CallerCounters* CountersOf(const RequestOrigin& origin) {
  return origin.account == nullptr ? nullptr : &origin.account->counters();
}

}  // namespace

void ReportEnd(const Execution& execution, const absl::Status& status, Statistics& statistics,
               Traces* traces) {
  const RequestOrigin& origin = execution.request().origin;
  const Execution::Report report = execution.report();
  uint64_t output_bytes = 0;
  if (status.ok()) {
    for (const uint64_t bytes : execution.output_bytes()) output_bytes += bytes;
  }
  statistics.AddEnd({.desc = execution.request().desc(),
                     .status = status,
                     .times = report.times,
                     .total = report.total,
                     .batch_size = report.batch_size,
                     .input_bytes = report.input_bytes,
                     .output_bytes = output_bytes,
                     .work_bytes = execution.work_bytes(),
                     .caller = CountersOf(origin)});
  statistics.recent_errors().Add(origin.rpc, status);
  if (traces != nullptr) TraceExecution(execution, report, output_bytes, status, *traces);
  LogLine line(LogLevel::kInfo, "execute");
  origin.AddTo(line);
  line.Add("execution_id", origin.execution_id)
      .Add("operator", *execution.description())
      .Add(status)
      .Add("upload", report.times.upload)
      .Add("compile", report.times.compile)
      .Add("queue", report.times.queue)
      .Add("compute", report.times.compute)
      .Add("download", report.times.download)
      .Add("input_bytes", report.input_bytes)
      .Add("output_bytes", output_bytes)
      .Add("batch_size", uint64_t{report.batch_size});
}

void ReportRefusal(const RequestOrigin& origin, const OperatorDesc* desc, const absl::Status& why,
                   Statistics& statistics, Traces* traces) {
  if (desc == nullptr) {
    statistics.AddRefusal(why);
  } else {
    statistics.AddEnd({.desc = desc, .status = why, .caller = CountersOf(origin)});
  }
  const absl::Duration held = SteadyNow() - origin.arrived;
  statistics.AddRefusalTime(origin.rpc, held);
  statistics.recent_errors().Add(origin.rpc, why);
  if (traces != nullptr && !origin.is_traced) TraceCall(origin, why, *traces);
  LogLine line(LogLevel::kInfo, "refuse");
  origin.AddTo(line);
  line.Add("execution_id", origin.execution_id).Add("held", held);
  if (desc != nullptr) line.Add("operator", ToString(*desc));
  line.Add(why);
}

}  // namespace opmill
