#include "server/traces/span_encoder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/slice.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/sha256.h"
#include "kernels/base/utf8.h"
#include "opentelemetry/trace_service.pb.h"
#include "server/config/version.h"
#include "server/observe/recent_errors.h"

namespace opmill {
namespace {

namespace otlp = ::opentelemetry::proto::collector::trace::v1;
using otlp::AnyValue;
using otlp::KeyValue;
using otlp::Span;

constexpr char kService[] = "opmill.v1.OperatorService";
constexpr char kOpenInference[] = "inference.GRPCInferenceService";
constexpr int kFirstServerError = 500;
// Of Span.flags: whether the parent is of another process is known, and whether it is.
constexpr uint32_t kIsRemoteKnown = 0x100;
constexpr uint32_t kIsRemote = 0x200;

// Collectors refuse all of a request if a text in it is not UTF-8.
std::string AsUtf8(absl::string_view text) {
  return IsUtf8(text) ? std::string(text) : absl::CHexEscape(text);
}

// The attribute without its value, whose field has so many bytes and follows.
void BeginAttribute(absl::string_view key, size_t value_bytes, WireWriter& to,
                    int field = Span::kAttributesFieldNumber) {
  to.Begin(field, WireWriter::SizeOf(KeyValue::kKeyFieldNumber, key.size()) +
                      WireWriter::SizeOf(KeyValue::kValueFieldNumber, value_bytes));
  to.Add(KeyValue::kKeyFieldNumber, key);
  to.Begin(KeyValue::kValueFieldNumber, value_bytes);
}

void AddText(absl::string_view key, absl::string_view value, WireWriter& to,
             int field = Span::kAttributesFieldNumber) {
  if (value.empty()) return;
  BeginAttribute(key, WireWriter::SizeOf(AnyValue::kStringValueFieldNumber, value.size()), to,
                 field);
  to.Add(AnyValue::kStringValueFieldNumber, value);
}

void AddNumber(absl::string_view key, uint64_t value, WireWriter& to, int field) {
  WireWriter number;
  number.AddNumber(field, value);
  BeginAttribute(key, number.text().size(), to);
  to.AddNumber(field, value);
}

void AddInteger(absl::string_view key, uint64_t value, WireWriter& to) {
  AddNumber(key, value, to, AnyValue::kIntValueFieldNumber);
}

// In the order of bytes that text has.
template <size_t count>
std::array<char, count * 8> BytesOf(const std::array<uint64_t, count>& numbers) {
  std::array<char, count* 8> bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(numbers[i / 8] >> (56 - 8 * (i % 8)));
  }
  return bytes;
}

template <size_t count>
absl::string_view View(const std::array<char, count>& bytes) {
  return {bytes.data(), bytes.size()};
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

struct Times {
  absl::Time begin;
  absl::Time end;
  absl::Duration to_time_of_day;
};

// What every span has.
void BeginSpan(const TraceContext& context, uint64_t parent, absl::string_view name,
               Span::SpanKind kind, uint32_t flags, const Times& times, WireWriter& span) {
  span.Clear();
  span.Add(Span::kTraceIdFieldNumber, View(BytesOf<2>({context.trace_high, context.trace_low})));
  span.Add(Span::kSpanIdFieldNumber, View(BytesOf<1>({context.span})));
  if (parent != 0) span.Add(Span::kParentSpanIdFieldNumber, View(BytesOf<1>({parent})));
  span.Add(Span::kNameFieldNumber, name);
  span.AddNumber(Span::kKindFieldNumber, kind);
  span.AddFixed64(Span::kStartTimeUnixNanoFieldNumber,
                  Nanoseconds(times.begin + times.to_time_of_day));
  span.AddFixed64(Span::kEndTimeUnixNanoFieldNumber, Nanoseconds(times.end + times.to_time_of_day));
  span.AddFixed32(Span::kFlagsFieldNumber, kIsRemoteKnown | flags | (context.is_sampled ? 1 : 0));
}

std::string NameOf(const TracedCall& call) {
  if (call.http == nullptr) return absl::StrCat(ServiceOf(call.rpc), "/", call.rpc);
  if (call.http->route.empty()) return "HTTP";
  return absl::StrCat(call.http->verb, " /", call.http->route);
}

void AddHttp(const TracedHttp& http, WireWriter& span) {
  AddText("http.request.method", http.route.empty() ? "_OTHER" : http.verb, span);
  AddText("url.path", AsUtf8(http.path), span);
  if (!http.route.empty()) AddText("http.route", absl::StrCat("/", http.route), span);
  if (http.status == 0) return;
  AddInteger("http.response.status_code", static_cast<uint64_t>(http.status), span);
}

void AddRpc(const TracedCall& call, WireWriter& span) {
  AddText("rpc.system", "grpc", span);
  AddText("rpc.service", ServiceOf(call.rpc), span);
  AddText("rpc.method", call.rpc, span);
  AddInteger("rpc.grpc.status_code", static_cast<uint64_t>(call.status.code()), span);
}

void AddExecution(const TracedExecution& execution, WireWriter& span) {
  const std::string& description = *execution.description;
  AddText(execution.is_model ? "opmill.model" : "opmill.operator",
          AsUtf8(ShortenedSentence(description, kMostTraceText)), span);
  AddText("opmill.model.version", AsUtf8(execution.model_version), span);
  if (!execution.is_model) AddText("opmill.operator.key", Sha256Hex(description), span);
  if (execution.id != 0) AddInteger("opmill.execution_id", execution.id, span);
  AddNumber("opmill.was_cached", execution.was_cached ? 1 : 0, span,
            AnyValue::kBoolValueFieldNumber);
  AddInteger("opmill.batch_size", execution.batch_size, span);
  AddInteger("opmill.input_bytes", execution.input_bytes, span);
  AddInteger("opmill.output_bytes", execution.output_bytes, span);
}

void AddStatus(const TracedCall& call, WireWriter& span) {
  if (call.status.ok()) return;
  const std::string sentence = AsUtf8(ShortenedSentence(call.status.message(), kMostTraceText));
  AddText("opmill.error", sentence, span);
  const bool is_ours = call.http == nullptr ? IsFailureOfServer(call.status.code())
                                            : call.http->status >= kFirstServerError;
  if (!is_ours) return;
  WireWriter status;
  status.Add(otlp::Status::kMessageFieldNumber, sentence);
  status.AddNumber(otlp::Status::kCodeFieldNumber, otlp::Status::STATUS_CODE_ERROR);
  span.Add(Span::kStatusFieldNumber, status.text());
}

}  // namespace

void SpanEncoder::Add(const TracedCall& call, absl::Duration to_time_of_day) {
  const bool has_remote_parent = call.parent != 0 && !call.is_of_http;
  BeginSpan(call.context, call.parent, NameOf(call),
            call.is_of_http ? Span::SPAN_KIND_INTERNAL : Span::SPAN_KIND_SERVER,
            has_remote_parent ? kIsRemote : 0, {call.begin, call.end, to_time_of_day}, span_);
  if (call.http == nullptr) {
    AddRpc(call, span_);
  } else {
    AddHttp(*call.http, span_);
  }
  AddText("client.address", AsUtf8(AddressOf(call.peer)), span_);
  AddText("opmill.caller", AsUtf8(call.caller), span_);
  if (call.execution.has_value()) AddExecution(*call.execution, span_);
  AddStatus(call, span_);
  spans_.Add(otlp::ScopeSpans::kSpansFieldNumber, span_.text());
  for (const TracedStage& stage : call.stages) {
    TraceContext context = call.context;
    context.span = stage.span != 0 ? stage.span : NewSpanId();
    BeginSpan(context, call.context.span, stage.name, Span::SPAN_KIND_INTERNAL, 0,
              {stage.begin, stage.end, to_time_of_day}, span_);
    spans_.Add(otlp::ScopeSpans::kSpansFieldNumber, span_.text());
  }
}

grpc::ByteBuffer SpanEncoder::Take() {
  WireWriter resource;
  constexpr int kAttributes = otlp::Resource::kAttributesFieldNumber;
  AddText("service.name", "opmill-server", resource, kAttributes);
  AddText("service.version", kVersion, resource, kAttributes);
  AddText("opmill.device", AsUtf8(device_), resource, kAttributes);
  WireWriter scope;
  scope.Add(otlp::InstrumentationScope::kNameFieldNumber, "opmill");
  scope.Add(otlp::InstrumentationScope::kVersionFieldNumber, kVersion);

  const size_t scope_bytes =
      WireWriter::SizeOf(otlp::ScopeSpans::kScopeFieldNumber, scope.text().size()) +
      spans_.text().size();
  const size_t resource_bytes =
      WireWriter::SizeOf(otlp::ResourceSpans::kResourceFieldNumber, resource.text().size()) +
      WireWriter::SizeOf(otlp::ResourceSpans::kScopeSpansFieldNumber, scope_bytes);
  WireWriter request;
  request.Begin(otlp::ExportTraceServiceRequest::kResourceSpansFieldNumber, resource_bytes);
  request.Add(otlp::ResourceSpans::kResourceFieldNumber, resource.text());
  request.Begin(otlp::ResourceSpans::kScopeSpansFieldNumber, scope_bytes);
  request.Add(otlp::ScopeSpans::kScopeFieldNumber, scope.text());
  const std::array<grpc::Slice, 2> slices = {grpc::Slice(request.text()),
                                             grpc::Slice(spans_.text())};
  spans_.Clear();
  return {slices.data(), slices.size()};
}

}  // namespace opmill
