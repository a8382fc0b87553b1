// The Open Inference Protocol over HTTP: the JSON of a request, with bytes behind it, becomes a
// ModelInferRequest that protobuf reads, whose tensors have the bytes of their shapes; the same
// tensors as a result are read back with the same bits; compressed bodies end within their limit.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/util/message_differencer.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.pb.h"
#include "kernels/base/utf8.h"
#include "proto/payload.h"
#include "server/http/compression.h"
#include "server/http/infer_json.h"
#include "server/models/data_types.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/message_bytes.h"

namespace opmill {
namespace {

constexpr size_t kMostInflated = 1 << 20;
constexpr size_t kMostJsonBytes = 16 << 20;

void CheckRefusal(const absl::Status& status) {
  FUZZ_CHECK(IsSentence(status) && IsUtf8(status.message()), status.message());
}

HttpBody BodyOf(absl::string_view bytes) {
  HttpBody body;
  body.Append(bytes);
  return body;
}

inference::ModelInferRequest Parse(const grpc::ByteBuffer& message) {
  inference::ModelInferRequest request;
  FUZZ_CHECK(request.ParseFromString(MessageBytes(message)),
             "The request is not a ModelInferRequest.");
  return request;
}

size_t ElementBytesOf(const std::string& datatype) {
  if (datatype == kBoolName) return 1;
  const auto type = DataTypeFrom(datatype, "datatype");
  FUZZ_CHECK(type.ok(), "A tensor of an unknown type was accepted.");
  return ElementBytes(*type);
}

// Sends the tensors of the request back, as JSON, and reads them again.
void CheckRoundTrip(const inference::ModelInferRequest& request) {
  inference::ModelInferResponse response;
  for (int i = 0; i < request.raw_input_contents_size(); ++i) {
    auto& output = *response.add_outputs();
    output.set_name("x");
    output.set_datatype(request.inputs(i).datatype());
    *output.mutable_shape() = request.inputs(i).shape();
    response.add_raw_output_contents(request.raw_input_contents(i));
  }
  const grpc::Slice slice(response.SerializeAsString());
  grpc::ByteBuffer buffer(&slice, 1);
  const absl::StatusOr<InferResult> result = EncodeResult(buffer, {}, kMostJsonBytes);
  if (!result.ok()) {  // NaN or infinity, from binary data
    CheckRefusal(result.status());
    return;
  }
  std::string json = result->json;
  json.replace(json.find("\"outputs\""), 9, "\"inputs\"");
  ResultForm form;
  const HttpBody body = BodyOf(json);
  const absl::StatusOr<grpc::ByteBuffer> again = DecodeInfer("", "", body, json.size(), form);
  FUZZ_CHECK(again.ok(), "A result cannot be read: " + json);
  const inference::ModelInferRequest read = Parse(*again);
  FUZZ_CHECK(read.raw_input_contents_size() == request.raw_input_contents_size(), json);
  for (int i = 0; i < request.raw_input_contents_size(); ++i) {
    if (request.inputs(i).datatype() == kBoolName) continue;  // any byte but 0 is true
    FUZZ_CHECK(read.raw_input_contents(i) == request.raw_input_contents(i), json);
  }
}

void CheckInfer(absl::string_view json, absl::string_view binary) {
  HttpBody body = BodyOf(json);
  body.Append(binary);
  ResultForm form;
  const absl::StatusOr<grpc::ByteBuffer> message =
      DecodeInfer("model", "1", body, json.size(), form);
  ResultForm plain_form;
  const absl::StatusOr<grpc::ByteBuffer> plain =
      DecodeInfer("model", "1", body, json.size(), plain_form, TakeLists::kNo);
  FUZZ_CHECK(message.status() == plain.status(), message.status().ToString());
  if (plain.ok()) {
    using google::protobuf::util::MessageDifferencer;
    FUZZ_CHECK(MessageDifferencer::Equals(Parse(*message), Parse(*plain)), json);
    FUZZ_CHECK(form.is_binary == plain_form.is_binary, json);
  }
  if (!message.ok()) {
    CheckRefusal(message.status());
    return;
  }
  const inference::ModelInferRequest request = Parse(*message);
  FUZZ_CHECK(request.model_name() == "model" && request.model_version() == "1", "Other names.");
  int raw = 0;
  for (const auto& input : request.inputs()) {
    if (raw == request.raw_input_contents_size()) break;
    if (input.parameters().contains("shared_memory_region") ||
        input.parameters().contains("tensor")) {
      return;  // whose entries are not in step
    }
    uint64_t bytes = ElementBytesOf(input.datatype());
    for (const int64_t size : input.shape()) {
      if (size < 0) return;  // the service refuses it
      bytes *= static_cast<uint64_t>(size);
    }
    FUZZ_CHECK(request.raw_input_contents(raw++).size() == bytes, "A tensor has another size.");
  }
  CheckRoundTrip(request);
}

}  // namespace
}  // namespace opmill

// The first byte: how long the JSON is, in 255ths of the rest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view all(reinterpret_cast<const char*>(data), size);
  const absl::string_view rest = all.substr(1);
  const size_t json_bytes = rest.size() * data[0] / 255;
  opmill::CheckInfer(rest.substr(0, json_bytes), rest.substr(json_bytes));
  opmill::HttpBody inflated;
  const absl::Status status =
      opmill::Inflate(opmill::BodyOf(rest), opmill::kMostInflated, inflated);
  FUZZ_CHECK(!status.ok() || inflated.size() <= opmill::kMostInflated, "Too much is inflated.");
  return 0;
}
