// Makes the spans of OpenTelemetry of what is known of calls.
#ifndef OPMILL_SERVER_TRACES_SPAN_ENCODER_H_
#define OPMILL_SERVER_TRACES_SPAN_ENCODER_H_

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/traces/traced_call.h"
#include "server/traces/wire_writer.h"

namespace opmill {

class SpanEncoder {
 public:
  // `device` is what the spans say of the server.
  explicit SpanEncoder(std::string device) : device_(std::move(device)) {}

  // The span of the call, and those of its stages. `to_time_of_day` converts its times.
  void Add(const TracedCall& call, absl::Duration to_time_of_day);
  // An ExportTraceServiceRequest with the spans that were added since the last one.
  grpc::ByteBuffer Take();

 private:
  const std::string device_;
  WireWriter spans_;  // fields of ScopeSpans
  WireWriter span_;   // fields of a span
};

}  // namespace opmill

#endif  // OPMILL_SERVER_TRACES_SPAN_ENCODER_H_
