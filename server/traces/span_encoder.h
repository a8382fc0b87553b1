// Makes the spans of OpenTelemetry of what is known of a call.
#ifndef OPMILL_SERVER_TRACES_SPAN_ENCODER_H_
#define OPMILL_SERVER_TRACES_SPAN_ENCODER_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "opentelemetry/trace_service.pb.h"
#include "server/traces/traced_call.h"

namespace opmill {

namespace otlp = ::opentelemetry::proto::collector::trace::v1;

// What all spans of this server have in common, and the list that takes them.
otlp::ScopeSpans& BeginSpans(absl::string_view device, otlp::ExportTraceServiceRequest& request);

// The span of the call, and those of its stages. `to_time_of_day` converts its times.
void AddSpans(const TracedCall& call, absl::Duration to_time_of_day, otlp::ScopeSpans& spans);

}  // namespace opmill

#endif  // OPMILL_SERVER_TRACES_SPAN_ENCODER_H_
