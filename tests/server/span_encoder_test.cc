#include "server/traces/span_encoder.h"

#include <cstdint>
#include <memory>
#include <string>

#include "grpcpp/support/proto_buffer_reader.h"
#include "gtest/gtest.h"
#include "opentelemetry/trace_service.pb.h"

namespace opmill {
namespace {

namespace otlp = ::opentelemetry::proto::collector::trace::v1;

absl::Time AtNanoseconds(int64_t nanoseconds) { return absl::FromUnixNanos(nanoseconds); }

otlp::ExportTraceServiceRequest Read(grpc::ByteBuffer encoded) {
  otlp::ExportTraceServiceRequest request;
  grpc::ProtoBufferReader reader(&encoded);
  EXPECT_TRUE(request.ParseFromZeroCopyStream(&reader));
  EXPECT_EQ(request.SerializeAsString().size(), encoded.Length()) << "there are unknown fields";
  return request;
}

// "?" if it is not there.
std::string Attribute(const otlp::Span& span, const std::string& key) {
  for (const otlp::KeyValue& each : span.attributes()) {
    if (each.key() != key) continue;
    if (each.value().has_int_value()) return std::to_string(each.value().int_value());
    if (each.value().has_bool_value()) return each.value().bool_value() ? "true" : "false";
    return each.value().string_value();
  }
  return "?";
}

TracedCall SampledCall() {
  TracedCall call;
  call.context = {0x0102030405060708, 0x090a0b0c0d0e0f10, 0x1112131415161718, true};
  call.rpc = "Execute";
  call.peer = "ipv4:10.0.0.7:1234";
  call.begin = AtNanoseconds(1000);
  call.end = AtNanoseconds(5000);
  call.stages = {{"upload", AtNanoseconds(1000), AtNanoseconds(3000)},
                 {"run", AtNanoseconds(3000), AtNanoseconds(5000)}};
  return call;
}

TEST(SpanEncoder, WritesWhatProtobufReads) {
  SpanEncoder encoder("adapter");
  TracedCall call = SampledCall();
  call.parent = 0x2122232425262728;
  call.caller = "alice";
  call.execution = {.description = std::make_shared<const std::string>("argmin(...)"),
                    .id = 300,
                    .was_cached = true,
                    .batch_size = 2,
                    .input_bytes = uint64_t{5} << 32,
                    .output_bytes = 0};
  encoder.Add(call, absl::Nanoseconds(70));
  const otlp::ExportTraceServiceRequest request = Read(encoder.Take());
  ASSERT_EQ(request.resource_spans_size(), 1);
  const otlp::ResourceSpans& resource = request.resource_spans(0);
  EXPECT_EQ(resource.resource().attributes(0).value().string_value(), "opmill-server");
  EXPECT_EQ(resource.resource().attributes(2).value().string_value(), "adapter");
  ASSERT_EQ(resource.scope_spans_size(), 1);
  EXPECT_EQ(resource.scope_spans(0).scope().name(), "opmill");
  const auto& spans = resource.scope_spans(0).spans();
  ASSERT_EQ(spans.size(), 3);
  EXPECT_EQ(spans[0].trace_id(), "\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf\x10");
  EXPECT_EQ(spans[0].span_id(), "\x11\x12\x13\x14\x15\x16\x17\x18");
  EXPECT_EQ(spans[0].parent_span_id(), "\x21\x22\x23\x24\x25\x26\x27\x28");
  EXPECT_EQ(spans[0].name(), "opmill.v1.OperatorService/Execute");
  EXPECT_EQ(spans[0].kind(), otlp::Span::SPAN_KIND_SERVER);
  EXPECT_EQ(spans[0].start_time_unix_nano(), 1070u);
  EXPECT_EQ(spans[0].end_time_unix_nano(), 5070u);
  EXPECT_EQ(spans[0].flags(), 0x301u);
  EXPECT_FALSE(spans[0].has_status());
  EXPECT_EQ(Attribute(spans[0], "client.address"), "10.0.0.7");
  EXPECT_EQ(Attribute(spans[0], "opmill.caller"), "alice");
  EXPECT_EQ(Attribute(spans[0], "opmill.execution_id"), "300");
  EXPECT_EQ(Attribute(spans[0], "opmill.was_cached"), "true");
  EXPECT_EQ(Attribute(spans[0], "opmill.input_bytes"), "21474836480");
  EXPECT_EQ(Attribute(spans[0], "opmill.output_bytes"), "0");
  for (const int i : {1, 2}) {
    EXPECT_EQ(spans[i].trace_id(), spans[0].trace_id());
    EXPECT_EQ(spans[i].parent_span_id(), spans[0].span_id());
    EXPECT_EQ(spans[i].span_id().size(), 8u);
    EXPECT_EQ(spans[i].kind(), otlp::Span::SPAN_KIND_INTERNAL);
  }
  EXPECT_NE(spans[1].span_id(), spans[2].span_id());
  EXPECT_EQ(spans[2].name(), "run");
  EXPECT_EQ(spans[2].start_time_unix_nano(), 3070u);
}

TEST(SpanEncoder, TakesEachSpanOnce) {
  SpanEncoder encoder("adapter");
  for (int i = 0; i < 500; ++i) encoder.Add(SampledCall(), absl::ZeroDuration());
  EXPECT_EQ(Read(encoder.Take()).resource_spans(0).scope_spans(0).spans_size(), 1500);
  EXPECT_EQ(Read(encoder.Take()).resource_spans(0).scope_spans(0).spans_size(), 0);
}

TEST(SpanEncoder, SaysWhoseFailureItIs) {
  SpanEncoder encoder("adapter");
  TracedCall call = SampledCall();
  call.status = absl::InvalidArgumentError("wrong");
  encoder.Add(call, absl::ZeroDuration());
  call.status = absl::UnavailableError(std::string(64, 'a'));  // as the SHA-256 of a model
  encoder.Add(call, absl::ZeroDuration());
  const otlp::ExportTraceServiceRequest request = Read(encoder.Take());
  const auto& spans = request.resource_spans(0).scope_spans(0).spans();
  EXPECT_EQ(Attribute(spans[0], "opmill.error"), "wrong");
  EXPECT_FALSE(spans[0].has_status());
  EXPECT_EQ(Attribute(spans[3], "opmill.error"), std::string(12, 'a') + "...");
  EXPECT_EQ(spans[3].status().code(), otlp::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(spans[3].status().message(), std::string(12, 'a') + "...");
}

TEST(SpanEncoder, TextsAreUtf8AndShort) {
  SpanEncoder encoder("\xff");
  TracedCall call = SampledCall();
  call.peer = "unix:\xfe";
  call.caller = "\xc3(";
  call.status = absl::InternalError("bad \x80 " + std::string(1000, 'x'));
  call.http = std::make_unique<TracedHttp>(
      TracedHttp{.verb = "", .path = "/\xffy", .route = "", .status = 500});
  encoder.Add(call, absl::ZeroDuration());
  const otlp::ExportTraceServiceRequest request = Read(encoder.Take());
  const otlp::Span& span = request.resource_spans(0).scope_spans(0).spans(0);
  EXPECT_EQ(span.name(), "HTTP");
  EXPECT_EQ(Attribute(span, "http.request.method"), "_OTHER");
  EXPECT_EQ(Attribute(span, "opmill.caller"), "\\xc3(");
  EXPECT_EQ(Attribute(span, "client.address"), "unix:\\xfe");
  EXPECT_EQ(span.status().code(), otlp::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(Attribute(span, "url.path"), "/\\xffy");
  EXPECT_LT(Attribute(span, "opmill.error").size(), 500u);
}

}  // namespace
}  // namespace opmill
