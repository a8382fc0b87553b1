#include "server/traces/span_encoder.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/sha256.h"
#include "server/config/version.h"
#include "server/observe/recent_errors.h"

namespace opmill {
namespace {

constexpr char kService[] = "opmill.v1.OperatorService";
constexpr char kOpenInference[] = "inference.GRPCInferenceService";
// Descriptions and errors have requests in them.
constexpr size_t kMostTextBytes = 400;
constexpr int kFirstServerError = 500;
// Of Span.flags: whether the parent is of another process is known, and whether it is.
constexpr uint32_t kIsRemoteKnown = 0x100;
constexpr uint32_t kIsRemote = 0x200;

template <typename To>
void AddText(absl::string_view key, absl::string_view value, To& to) {
  if (value.empty()) return;
  otlp::KeyValue& attribute = *to.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_string_value(std::string(value));
}

void AddNumber(absl::string_view key, uint64_t value, otlp::Span& to) {
  otlp::KeyValue& attribute = *to.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_int_value(static_cast<int64_t>(value));
}

void AddFlag(absl::string_view key, bool value, otlp::Span& to) {
  otlp::KeyValue& attribute = *to.add_attributes();
  attribute.set_key(std::string(key));
  attribute.mutable_value()->set_bool_value(value);
}

// In the order of bytes that text has.
std::string BytesOf(std::initializer_list<uint64_t> halves) {
  std::string bytes;
  for (const uint64_t half : halves) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(half >> shift);
  }
  return bytes;
}

uint64_t Nanoseconds(absl::Time time) {
  return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixNanos(time)));
}

// ipv4:10.0.0.7:51234 is at 10.0.0.7.
absl::string_view AddressOf(absl::string_view peer) {
  if (absl::StartsWith(peer, "unix")) return peer;
  if (absl::StartsWith(peer, "ipv4:") || absl::StartsWith(peer, "ipv6:")) peer.remove_prefix(5);
  return peer.substr(0, peer.rfind(':'));
}

absl::string_view ServiceOf(absl::string_view rpc) {
  static const auto* const service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(kService);
  const bool is_ours = service != nullptr && service->FindMethodByName(std::string(rpc)) != nullptr;
  return is_ours ? kService : kOpenInference;
}

// Those that the conventions of OpenTelemetry count against a server.
bool IsFailureOfServer(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

otlp::Span& AddSpan(const TraceContext& context, uint64_t parent, absl::string_view name,
                    otlp::ScopeSpans& spans) {
  otlp::Span& span = *spans.add_spans();
  span.set_trace_id(BytesOf({context.trace_high, context.trace_low}));
  span.set_span_id(BytesOf({context.span}));
  if (parent != 0) span.set_parent_span_id(BytesOf({parent}));
  span.set_name(std::string(name));
  span.set_flags(kIsRemoteKnown | (context.is_sampled ? 1 : 0));
  return span;
}

void SetTimes(absl::Time begin, absl::Time end, absl::Duration to_time_of_day, otlp::Span& span) {
  span.set_start_time_unix_nano(Nanoseconds(begin + to_time_of_day));
  span.set_end_time_unix_nano(Nanoseconds(end + to_time_of_day));
}

otlp::Span& AddRpc(const TracedCall& call, otlp::ScopeSpans& spans) {
  const absl::string_view service = ServiceOf(call.rpc);
  otlp::Span& span =
      AddSpan(call.context, call.parent, absl::StrCat(service, "/", call.rpc), spans);
  AddText("rpc.system", "grpc", span);
  AddText("rpc.service", service, span);
  AddText("rpc.method", call.rpc, span);
  AddNumber("rpc.grpc.status_code", static_cast<uint64_t>(call.status.code()), span);
  return span;
}

otlp::Span& AddHttp(const TracedCall& call, otlp::ScopeSpans& spans) {
  const TracedHttp& http = *call.http;
  const std::string route = http.route.empty() ? "" : absl::StrCat("/", http.route);
  otlp::Span& span = AddSpan(call.context, call.parent,
                             absl::StrCat(http.verb, route.empty() ? "" : " ", route), spans);
  AddText("http.request.method", http.verb, span);
  AddText("url.path", BeginningOf(http.path, kMostTextBytes), span);
  AddText("http.route", route, span);
  if (http.status != 0) {
    AddNumber("http.response.status_code", static_cast<uint64_t>(http.status), span);
  }
  return span;
}

void AddExecution(const TracedExecution& execution, otlp::Span& span) {
  const std::string& description = *execution.description;
  AddText(execution.is_model ? "opmill.model" : "opmill.operator",
          ShortenedSentence(description, kMostTextBytes), span);
  if (!execution.is_model) AddText("opmill.operator.key", Sha256Hex(description), span);
  if (execution.id != 0) AddNumber("opmill.execution_id", execution.id, span);
  AddFlag("opmill.was_cached", execution.was_cached, span);
  AddNumber("opmill.batch_size", execution.batch_size, span);
  AddNumber("opmill.input_bytes", execution.input_bytes, span);
  AddNumber("opmill.output_bytes", execution.output_bytes, span);
}

}  // namespace

otlp::ScopeSpans& BeginSpans(absl::string_view device, otlp::ExportTraceServiceRequest& request) {
  otlp::ResourceSpans& resource = *request.add_resource_spans();
  AddText("service.name", "opmill-server", *resource.mutable_resource());
  AddText("service.version", kVersion, *resource.mutable_resource());
  AddText("opmill.device", device, *resource.mutable_resource());
  otlp::ScopeSpans& spans = *resource.add_scope_spans();
  spans.mutable_scope()->set_name("opmill");
  spans.mutable_scope()->set_version(kVersion);
  return spans;
}

void AddSpans(const TracedCall& call, absl::Duration to_time_of_day, otlp::ScopeSpans& spans) {
  otlp::Span& span = call.http == nullptr ? AddRpc(call, spans) : AddHttp(call, spans);
  span.set_kind(call.is_of_http ? otlp::Span::SPAN_KIND_INTERNAL : otlp::Span::SPAN_KIND_SERVER);
  if (call.parent != 0 && !call.is_of_http) span.set_flags(span.flags() | kIsRemote);
  SetTimes(call.begin, call.end, to_time_of_day, span);
  AddText("client.address", AddressOf(call.peer), span);
  AddText("opmill.caller", call.caller, span);
  if (call.execution != nullptr) AddExecution(*call.execution, span);
  if (!call.status.ok()) {
    std::string sentence = ShortenedSentence(call.status.message(), kMostTextBytes);
    AddText("opmill.error", sentence, span);
    if (call.http == nullptr ? IsFailureOfServer(call.status.code())
                             : call.http->status >= kFirstServerError) {
      span.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
      span.mutable_status()->set_message(std::move(sentence));
    }
  }
  for (const TracedStage& stage : call.stages) {
    TraceContext context = call.context;
    context.span = NewSpanId();
    otlp::Span& child = AddSpan(context, call.context.span, stage.name, spans);
    child.set_kind(otlp::Span::SPAN_KIND_INTERNAL);
    SetTimes(stage.begin, stage.end, to_time_of_day, child);
  }
}

}  // namespace opmill
