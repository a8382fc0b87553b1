#include "server/execution/trace_report.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

bool IsKnown(absl::Time time) { return time != absl::InfinitePast(); }

// With the stages until the execution begins, or until `end` if there is none. Null if it is not
// traced.
std::unique_ptr<TracedCall> BeginTrace(const RequestOrigin& origin, const absl::Status& status,
                                       absl::Time begins_at, absl::Time end, Traces& traces) {
  // An HTTP request decides for the call that it becomes.
  const std::optional<TraceContext> caller =
      traces.Sample(origin.traceparent, /*may_begin=*/!origin.is_http);
  if (!caller.has_value()) return nullptr;
  auto call = std::make_unique<TracedCall>();
  call->context = *caller;
  call->context.span = NewSpanId();
  call->parent = caller->span;
  call->rpc = origin.rpc;
  call->is_of_http = origin.is_http;
  call->peer = origin.peer;
  call->caller = origin.caller;
  call->begin = IsKnown(origin.called_at) ? origin.called_at : origin.arrived;
  call->end = end;
  call->status = status;
  const bool is_asked = IsKnown(origin.asked_at);
  if (call->begin < origin.arrived) {
    call->stages.push_back({"receive", call->begin, origin.arrived});
  }
  // Of an answer without an execution it is not known how long that took.
  if (is_asked || !status.ok()) {
    call->stages.push_back({"decode", origin.arrived, is_asked ? origin.asked_at : begins_at});
  }
  if (is_asked) call->stages.push_back({"admit", origin.asked_at, begins_at});
  return call;
}

}  // namespace

void TraceCall(const RequestOrigin& origin, const absl::Status& status, Traces& traces) {
  const absl::Time now = SteadyNow();
  std::unique_ptr<TracedCall> call = BeginTrace(origin, status, now, now, traces);
  if (call != nullptr) traces.Add(std::move(call));
}

void TraceExecution(const Execution& execution, const Execution::Report& report,
                    uint64_t output_bytes, const absl::Status& status, Traces& traces) {
  const RequestOrigin& origin = execution.request().origin;
  const absl::Time end = report.begun_at + report.total;
  std::unique_ptr<TracedCall> call = BeginTrace(origin, status, report.begun_at, end, traces);
  if (call == nullptr) return;
  const ExecutionRequest& request = execution.request();
  const bool is_graph = request.model != nullptr && request.model->graph != nullptr;
  call->execution = {
      .description = is_graph ? std::make_shared<const std::string>(request.model->model->name)
                              : execution.description(),
      .model_version = is_graph ? request.model->model->version : "",
      .is_model = request.desc() == nullptr,
      .id = origin.execution_id,
      .was_cached = report.was_cached,
      .batch_size = report.batch_size,
      .input_bytes = report.input_bytes,
      .output_bytes = output_bytes};
  const auto add = [&call, end](absl::string_view name, absl::Time from, absl::Time to) {
    const absl::Time until = IsKnown(to) ? to : end;
    call->stages.push_back({name, from, until});
    return until;
  };
  absl::Time ready = add("upload", report.begun_at, report.uploaded_at);
  if (!report.was_cached) {
    ready = std::max(ready, add("compile", report.begun_at, report.compiled_at));
  }
  const bool is_queued =
      IsKnown(report.uploaded_at) && (report.was_cached || IsKnown(report.compiled_at));
  if (is_queued) add("queue", ready, report.running_at);
  if (IsKnown(report.running_at)) add("run", report.running_at, report.computed_at);
  if (IsKnown(report.computed_at)) add("download", report.computed_at, end);
  traces.Add(std::move(call));
}

}  // namespace opmill
