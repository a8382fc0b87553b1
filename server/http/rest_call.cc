#include "server/http/rest_call.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "inference/grpc_service.pb.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/json_text.h"
#include "kernels/base/steady_time.h"
#include "server/api/grpc_status.h"
#include "server/api/out_of_memory.h"
#include "server/http/compression.h"
#include "server/http/json_messages.h"
#include "server/status/from_grpc.h"
#include "server/traces/trace_context.h"

namespace opmill {
namespace {

constexpr char kService[] = "inference.GRPCInferenceService";
// As for messages of the same methods of gRPC.
constexpr size_t kMostBytesOfSmall = size_t{64} << 10;
// Of the memory for bodies, what the JSON of one request may take, decoded: an eighth.
constexpr uint64_t kShareOfJson = 8;
constexpr uint64_t kTextsOfLists = 3;  // the JSON without its long lists, those, and what is parsed
constexpr size_t kLeastCompressed = 1024;  // less does not become smaller packets
constexpr char kHttpStatus[] = "opmill/http_status";

int HttpStatusOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return 200;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
      return 400;
    case grpc::StatusCode::UNAUTHENTICATED:
      return 401;
    case grpc::StatusCode::PERMISSION_DENIED:
      return 403;
    case grpc::StatusCode::NOT_FOUND:
      return 404;
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::ABORTED:
      return 409;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return 429;
    case grpc::StatusCode::CANCELLED:
      return 499;
    case grpc::StatusCode::UNIMPLEMENTED:
      return 501;
    case grpc::StatusCode::UNAVAILABLE:
      return 503;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return 504;
    default:
      return 500;
  }
}

template <typename Detail>
bool Unpack(const google::rpc::Status& status, Detail& detail) {
  return std::any_of(status.details().begin(), status.details().end(),
                     [&](const auto& each) { return each.UnpackTo(&detail); });
}

const google::protobuf::MethodDescriptor& MethodOf(const Route& route) {
  return *google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
      absl::StrCat(kService, ".", route.rpc));
}

// A field of strings, if the message has it.
void SetText(google::protobuf::Message& message, const char* field, const std::string& text) {
  const auto* const descriptor = message.GetDescriptor()->FindFieldByName(field);
  message.GetReflection()->SetString(&message, descriptor, text);
}

void AppendAnswer(const google::protobuf::Message& message, const char* field_name,
                  std::string& json) {
  if (field_name == nullptr) {
    json::AppendMessage(message, json);
    return;
  }
  const auto& field = *message.GetDescriptor()->FindFieldByName(field_name);
  if (!field.is_map()) {
    json::AppendField(message, field, json);
    return;
  }
  // The protocol has a list of the values, which contain their keys.
  const auto& reflection = *message.GetReflection();
  json += '[';
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const auto& entry = reflection.GetRepeatedMessage(message, &field, i);
    if (i > 0) json += ',';
    json::AppendField(entry, *entry.GetDescriptor()->map_value(), json);
  }
  json += ']';
}

}  // namespace

absl::Status WithHttpStatus(absl::Status status, int http_status) {
  status.SetPayload(kHttpStatus, absl::Cord(absl::StrCat(http_status)));
  return status;
}

size_t RestAnswer::size() const {
  size_t bytes = text.size();
  for (const absl::Span<const std::byte> part : binary) bytes += part.size();
  return bytes;
}

RestCall::RestCall(const RestParts& parts, std::string peer, std::string certificate_name)
    : parts_(parts), certificate_name_(std::move(certificate_name)) {
  origin_.rpc = "HTTP";
  origin_.peer = std::move(peer);
  origin_.is_http = true;
}

absl::Status RestCall::Begin(RestHeader header) {
  header_ = std::move(header);
  if (IsTraceparent(header_.traceparent)) origin_.traceparent = header_.traceparent;
  BeginTrace();
  // Browsers let pages of any site send requests to an address that only this machine can reach.
  if (header_.is_cross_site) {
    return absl::PermissionDeniedError(
        "The request comes from a page of another site (Origin, Sec-Fetch-Site); this server "
        "answers none of these.");
  }
  absl::string_view verb = header_.verb;
  if (verb == "HEAD") verb = "GET";
  absl::StatusOr<RoutedRequest> routed = FindRoute(verb, header_.target);
  if (!routed.ok()) {
    return absl::IsUnimplemented(routed.status()) ? WithHttpStatus(routed.status(), 405)
                                                  : routed.status();
  }
  routed_ = *std::move(routed);
  origin_.rpc = routed_.route->rpc;
  if (!routed_.route->is_open) {
    std::optional<absl::string_view> authorization;
    if (!header_.authorization.empty()) authorization = header_.authorization;
    absl::StatusOr<std::string> caller = parts_.access.NameCaller(
        absl::StrCat("/", kService, "/", routed_.route->rpc), authorization, certificate_name_);
    if (!caller.ok()) {
      was_refused_by_access_ = true;
      return caller.status();
    }
    origin_.caller = *std::move(caller);
  }
  if (absl::EqualsIgnoreCase(header_.content_encoding, "identity")) {
    header_.content_encoding.clear();
  }
  if (is_compressed() && !IsSupportedEncoding(header_.content_encoding)) {
    return WithHttpStatus(
        InvalidField("Content-Encoding",
                     absl::StrCat("Content-Encoding (", Excerpt(header_.content_encoding),
                                  ") is none of gzip, deflate.")),
        415);
  }
  return absl::OkStatus();
}

size_t RestCall::max_body_bytes() const {
  const bool takes_large = routed_.route != nullptr && routed_.route->takes_large_body;
  return std::min<uint64_t>(parts_.limits.max_message_bytes,
                            takes_large ? std::numeric_limits<uint64_t>::max() : kMostBytesOfSmall);
}

const std::shared_ptr<CallerAccount>& RestCall::account() {
  return parts_.executor.AccountOf(origin_);
}

uint64_t RestCall::BytesFor(size_t body_bytes) const {
  return body_bytes + (is_compressed() ? MostInflated(body_bytes, max_body_bytes()) : 0);
}

absl::StatusOr<uint64_t> RestCall::BytesToDecode(HttpBody& body) {
  Mark("receive");
  if (is_compressed()) {
    HttpBody inflated;
    inflated.SetShare(body.share());
    const absl::Status status =
        CatchOutOfMemory([&] { return Inflate(body, max_body_bytes(), inflated); });
    if (!status.ok()) return absl::IsOutOfRange(status) ? WithHttpStatus(status, 413) : status;
    body = std::move(inflated);
  }
  json_size_ = body.size();
  if (!header_.json_size.empty()) {
    uint64_t size = 0;
    if (!absl::SimpleAtoi(header_.json_size, &size) || size > body.size() || size == 0) {
      return InvalidField(
          "Inference-Header-Content-Length",
          absl::StrCat("Inference-Header-Content-Length (", Excerpt(header_.json_size),
                       ") is not at least 1 and at most ", body.size(), ", the size of the body."));
    }
    json_size_ = size;
  }
  const uint64_t bytes = json_size_ * (json::kMemoryPerByte + kTextsOfLists);
  const uint64_t most = parts_.bodies.limit() / kShareOfJson;
  if (bytes <= most) return bytes;
  return WithHttpStatus(absl::ResourceExhaustedError(absl::StrCat(
                            "The JSON of the request has ", json_size_, " bytes; at most ",
                            most / (json::kMemoryPerByte + kTextsOfLists),
                            " are taken (--memory_limit). Send tensors by the binary extension.")),
                        413);
}

absl::Status RestCall::Decode(HttpBody& body) {
  return CatchOutOfMemory([&] { return DecodeMessage(body); });
}

absl::Status RestCall::DecodeMessage(const HttpBody& body) {
  if (routed_.route->answer == AnswerKind::kInfer) {
    ASSIGN_OR_RETURN(request_, DecodeInfer(routed_.name, routed_.version, body, json_size_, form_));
    return absl::OkStatus();
  }
  const std::unique_ptr<google::protobuf::Message> message = NewMessage(true);
  if (body.size() > 0) {
    json::Document document(body.size());
    body.CopyTo(0, body.size(), document.text());
    ASSIGN_OR_RETURN(const json::element root, document.Parse());
    RETURN_IF_ERROR(json::ReadMessage(root, *message));
  }
  if (!routed_.name.empty()) SetText(*message, routed_.route->name_field, routed_.name);
  if (!routed_.version.empty()) SetText(*message, "version", routed_.version);
  const grpc::Slice slice(message->SerializeAsString());
  request_ = grpc::ByteBuffer(&slice, 1);
  return absl::OkStatus();
}

void RestCall::Call(std::function<void()> done) {
  Mark("decode");
  parts_.access.forwarding().Mark({origin_.peer, origin_.caller}, context_);
  if (!origin_.traceparent.empty()) context_.AddMetadata(kTraceparent, origin_.traceparent);
  parts_.services.UnaryCall(&context_, absl::StrCat("/", kService, "/", routed_.route->rpc), {},
                            &request_, &response_,
                            [this, done = std::move(done)](grpc::Status status) {
                              result_ = std::move(status);
                              Mark("call", call_span_);
                              done();
                            });
}

uint64_t RestCall::BytesToAnswer() const {
  // FLOAT16, whose elements take two bytes, has the longest text.
  constexpr uint64_t kTextPerByte = 9;
  const bool is_binary = form_.is_binary && form_.is_binary_output.empty();
  const bool is_short = is_binary && header_.accept_encoding.empty();
  return is_short ? 0
                  : std::min<uint64_t>(kTextPerByte * response_.Length(),
                                       parts_.bodies.limit() / kShareOfJson);
}

RestAnswer RestCall::Answer() {
  request_.Clear();
  RestAnswer answer;
  if (result_.ok()) {
    absl::StatusOr<RestAnswer> encoded = absl::UnknownError("");
    const absl::Status status = CatchOutOfMemory([&] {
      encoded = EncodeAnswer();
      return encoded.status();
    });
    answer = status.ok() ? *std::move(encoded) : ErrorAnswer(ToGrpcStatus(status));
    if (traced_ != nullptr) traced_->status = status;
  } else {
    answer = ErrorAnswer(result_);
    if (traced_ != nullptr) traced_->status = ToAbslStatus(result_);
  }
  if (IsTraceparent(header_.traceparent)) {
    answer.fields.emplace_back(kTraceparent, header_.traceparent);
  }
  static_cast<void>(CatchOutOfMemory([&] {
    Compress(answer);
    return absl::OkStatus();
  }));
  http_status_ = answer.status;
  Mark("encode");
  return answer;
}

RestAnswer RestCall::Refuse(const absl::Status& why) {
  if (!was_refused_by_access_) parts_.executor.Refuse(origin_, nullptr, why);
  RestAnswer answer = ErrorAnswer(ToGrpcStatus(why));
  if (const auto http_status = why.GetPayload(kHttpStatus)) {
    static_cast<void>(absl::SimpleAtoi(std::string(*http_status), &answer.status));
  }
  http_status_ = answer.status;
  if (traced_ != nullptr) traced_->status = why;
  Mark("refuse");
  return answer;
}

void RestCall::BeginTrace() {
  if (parts_.executor.traces() == nullptr) return;
  const std::optional<TraceContext> caller =
      parts_.executor.traces()->Sample(origin_.traceparent, /*may_begin=*/true);
  if (!caller.has_value()) return;
  origin_.is_traced = true;
  traced_ = std::make_unique<TracedCall>();
  traced_->context = *caller;
  traced_->context.span = NewSpanId();
  traced_->parent = caller->span;
  traced_->begin = marked_at_ = origin_.arrived;
  // The gRPC call, and what is logged of it, belongs to a stage of the request.
  TraceContext context = traced_->context;
  context.span = call_span_ = NewSpanId();
  origin_.traceparent = TraceparentOf(context);
}

void RestCall::Mark(absl::string_view stage, uint64_t span) {
  if (traced_ == nullptr) return;
  const absl::Time now = SteadyNow();
  traced_->stages.push_back({stage, marked_at_, now, span});
  marked_at_ = now;
}

void RestCall::End() {
  if (traced_ == nullptr) return;
  Mark("send");
  traced_->end = marked_at_;
  traced_->peer = origin_.peer;
  traced_->caller = origin_.caller;
  const absl::string_view target = header_.target;
  traced_->http = std::make_unique<TracedHttp>(TracedHttp{
      .verb = routed_.route == nullptr ? "" : header_.verb,
      .path = std::string(BeginningOf(target.substr(0, target.find('?')), kMostTraceText)),
      .route = routed_.route == nullptr ? "" : routed_.route->path,
      .status = http_status_});
  parts_.executor.traces()->Add(std::move(traced_));
}

absl::StatusOr<RestAnswer> RestCall::EncodeAnswer() {
  RestAnswer answer;
  const Route& route = *routed_.route;
  if (route.answer == AnswerKind::kInfer) {
    ASSIGN_OR_RETURN(InferResult result,
                     EncodeResult(response_, form_, parts_.bodies.limit() / kShareOfJson));
    answer.fields.emplace_back("Content-Type",
                               result.has_binary ? "application/octet-stream" : "application/json");
    if (result.has_binary) {
      answer.fields.emplace_back("Inference-Header-Content-Length",
                                 absl::StrCat(result.json.size()));
    }
    answer.text = std::move(result.json);
    answer.binary = std::move(result.binary);
    answer.owner = std::move(result.message);
    return answer;
  }
  if (route.answer == AnswerKind::kNothing) return answer;
  const std::unique_ptr<google::protobuf::Message> message = NewMessage(false);
  grpc::ProtoBufferReader reader(&response_);
  if (!message->ParseFromZeroCopyStream(&reader)) {
    return absl::InternalError("The service's answer is malformed.");
  }
  if (route.answer == AnswerKind::kReadiness) {
    const auto& field = *message->GetDescriptor()->field(0);
    answer.status = message->GetReflection()->GetBool(*message, &field) ? 200 : 503;
  }
  answer.fields.emplace_back("Content-Type", "application/json");
  AppendAnswer(*message, route.answer_field, answer.text);
  return answer;
}

std::unique_ptr<google::protobuf::Message> RestCall::NewMessage(bool of_request) const {
  const auto& method = MethodOf(*routed_.route);
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(of_request ? method.input_type() : method.output_type())
          ->New());
}

RestAnswer RestCall::ErrorAnswer(const grpc::Status& status) {
  RestAnswer answer{.status = HttpStatusOf(status.error_code()),
                    .fields = {{"Content-Type", "application/json"}}};
  answer.text = "{\"error\":";
  AppendJsonString(answer.text, status.error_message());
  google::rpc::Status details;
  google::rpc::BadRequest bad_request;
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
  if (details.ParseFromString(status.error_details())) {
    if (Unpack(details, bad_request) && bad_request.field_violations_size() > 0) {
      answer.text += ",\"field\":";
      AppendJsonString(answer.text, bad_request.field_violations(0).field());
    }
    if (Unpack(details, info)) {
      answer.text += ",\"reason\":";
      AppendJsonString(answer.text, info.reason());
    }
    if (Unpack(details, retry)) {  // in whole seconds
      answer.fields.emplace_back("Retry-After", absl::StrCat(retry.retry_delay().seconds() + 1));
    }
  }
  answer.text += '}';
  if (answer.status == 401) answer.fields.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

void RestCall::Compress(RestAnswer& answer) const {
  const absl::string_view encoding = ChooseEncoding(header_.accept_encoding);
  if (encoding.empty() || answer.size() < kLeastCompressed) return;
  std::vector<absl::string_view> parts = {answer.text};
  for (const absl::Span<const std::byte> part : answer.binary) {
    parts.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
  }
  std::string compressed = Deflate(encoding, parts);
  if (compressed.empty()) return;
  answer.text = std::move(compressed);
  answer.binary.clear();
  answer.owner.reset();
  answer.fields.emplace_back("Content-Encoding", std::string(encoding));
}

}  // namespace opmill
