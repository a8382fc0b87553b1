// The Open Inference Protocol: a ModelInferRequest becomes an execution and a response, compared
// with protobuf's reading of the same bytes and the reference; the configuration of a model is
// read, and read again as the server encodes it.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "cases.pb.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/reference/device/reference_device.h"
#include "server/execution/executor.h"
#include "server/models/config_text.h"
#include "server/models/model_config.h"
#include "server/models/model_table.h"
#include "server/observe/log.h"
#include "server/oip/infer_request.h"
#include "server/oip/model_metadata.h"
#include "server/shared_memory/shared_memory.h"
#include "tests/conformance/random.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/proto_mutator.h"

namespace opmill::oip {
namespace {

using inference::InferTensorContents;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

// Shared by all requests of the process.
struct Backend {
  Backend() {
    StartLog(LogFormat::kJson, LogLevel::kError, std::fopen("/dev/null", "w"));
    device = CreateReferenceDevice({.threads = 1});
    cache = OperatorCache::Create(*device, {.capacity = 64});
    executor = std::make_unique<Executor>(*device, *cache, statistics,
                                          Limits{.max_bytes_in_flight = uint64_t{1} << 30});
    models = std::make_unique<ModelTable>();
    tensors = std::make_unique<TensorStore>(*device, ResidentTensorLimits{1 << 20});
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<OperatorCache> cache;
  Statistics statistics;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<ModelTable> models;
  SharedMemory memory{SharedMemory::Users::kNone, /*max_regions=*/1};
  std::unique_ptr<TensorStore> tensors;
};

grpc::ByteBuffer Cut(const std::string& bytes, uint32_t seed) {
  Random random(seed);
  const uint64_t longest = seed == 0 ? bytes.size() + 1 : 1 + random.Below(64);
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    slices.emplace_back(bytes.substr(at, random.Below(longest + 1)));
    at += slices.back().size();
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

template <typename Element, typename Values>
std::string ElementsOf(const Values& values) {
  std::string bytes;
  for (const auto value : values) {
    const auto element = static_cast<Element>(value);
    bytes.append(reinterpret_cast<const char*>(&element), sizeof(element));
  }
  return bytes;
}

std::string TypedBytes(const InferTensorContents& contents, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return ElementsOf<float>(contents.fp32_contents());
    case DataType::kInt64:
      return ElementsOf<int64_t>(contents.int64_contents());
    case DataType::kInt32:
      return ElementsOf<int32_t>(contents.int_contents());
    case DataType::kInt16:
      return ElementsOf<int16_t>(contents.int_contents());
    case DataType::kInt8:
      return ElementsOf<int8_t>(contents.int_contents());
    case DataType::kUint64:
      return ElementsOf<uint64_t>(contents.uint64_contents());
    case DataType::kUint32:
      return ElementsOf<uint32_t>(contents.uint_contents());
    case DataType::kUint16:
      return ElementsOf<uint16_t>(contents.uint_contents());
    case DataType::kUint8:
      return ElementsOf<uint8_t>(contents.uint_contents());
    default:
      FUZZ_CHECK(false, "typed contents of a type that has none");
  }
}

// The bytes of the operator's input `index`, as protobuf reads the request.
std::string InputBytes(const ModelInferRequest& request, const Model& model,
                       const OperatorDesc& desc, size_t index) {
  for (int i = 0; i < request.inputs_size(); ++i) {
    if (request.inputs(i).name() != model.inputs[index].name) continue;
    if (request.raw_input_contents_size() > 0) return request.raw_input_contents(i);
    return TypedBytes(request.inputs(i).contents(), desc.inputs[index].data_type);
  }
  FUZZ_CHECK(false, "accepted without input ", index);
}

std::vector<std::string> Expected(const OperatorDesc& desc, std::vector<std::string> inputs) {
  std::vector<absl::Span<const std::byte>> from;
  for (size_t i = 0; i < inputs.size(); ++i) {
    FUZZ_CHECK(inputs[i].size() == SpannedBytes(desc.inputs[i]), inputs[i].size(), " bytes");
    inputs[i].resize(RequiredBytes(desc.inputs[i]));
    from.emplace_back(reinterpret_cast<const std::byte*>(inputs[i].data()), inputs[i].size());
  }
  std::vector<std::string> outputs;
  const std::vector<TensorDesc> tensors = OutputsOf(desc);
  for (const TensorDesc& tensor : tensors) outputs.emplace_back(RequiredBytes(tensor), '\0');
  std::vector<absl::Span<std::byte>> to;
  for (std::string& output : outputs) {
    to.emplace_back(reinterpret_cast<std::byte*>(output.data()), output.size());
  }
  const absl::Status run = ReferenceRun(desc, from, to);
  FUZZ_CHECK(run.ok(), run.ToString());
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].resize(SpannedBytes(tensors[i]));
  return outputs;
}

ModelInferResponse Parse(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  FUZZ_CHECK(buffer.Dump(&slices).ok(), "");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  ModelInferResponse response;
  FUZZ_CHECK(response.ParseFromString(bytes), "a response that is not a message");
  return response;
}

void CheckResponse(const ModelInferRequest& request, const Model& model,
                   const ModelInferResponse& response, const std::vector<std::string>& expected) {
  FUZZ_CHECK(response.id() == request.id() && response.model_name() == request.model_name(),
             response.ShortDebugString());
  const bool has_all = request.outputs_size() == 0;
  const int count = has_all ? static_cast<int>(expected.size()) : request.outputs_size();
  FUZZ_CHECK(response.outputs_size() == count && response.raw_output_contents_size() == count,
             response.ShortDebugString());
  for (int i = 0; i < count; ++i) {
    const std::string& name =
        has_all ? model.outputs[static_cast<size_t>(i)].name : request.outputs(i).name();
    const auto index = static_cast<size_t>(
        absl::c_find_if(model.outputs, [&](const auto& tensor) { return tensor.name == name; }) -
        model.outputs.begin());
    FUZZ_CHECK(response.outputs(i).name() == name, response.ShortDebugString());
    FUZZ_CHECK(response.raw_output_contents(i) == expected[index], name);
  }
}

// False if the server refuses the request.
bool Infer(Backend& backend, const std::string& bytes, uint32_t cut) {
  ModelInferRequest request;
  const bool is_message = request.ParseFromString(bytes);
  grpc::ByteBuffer buffer = Cut(bytes, cut);
  InferRequest infer;
  ExecutionRequest begin;
  begin.origin = {.rpc = "ModelInfer", .peer = "fuzzer"};
  const absl::Status decoded =
      infer.Decode(buffer, *backend.models, {backend.memory, *backend.tensors}, begin);
  if (!decoded.ok()) {
    FUZZ_CHECK(IsSentence(decoded), decoded.ToString());
    FUZZ_CHECK(absl::IsInvalidArgument(decoded) || absl::IsNotFound(decoded) ||
                   absl::IsFailedPrecondition(decoded),
               decoded.ToString());
    return false;
  }
  FUZZ_CHECK(is_message, "accepted, but protobuf refuses it");
  const OperatorDesc desc = *begin.desc();
  std::vector<std::string> inputs;
  for (size_t i = 0; i < desc.inputs.size(); ++i) {
    inputs.push_back(InputBytes(request, *infer.model(), desc, i));
  }
  begin.deadline = absl::InfiniteFuture();
  absl::Notification ready;
  begin.on_ready = [&](const auto&) { ready.Notify(); };
  const absl::StatusOr<std::shared_ptr<Execution>> execution = backend.executor->Begin(begin);
  FUZZ_CHECK(execution.ok(), execution.status().ToString());
  infer.SendInputs(*backend.executor, *execution);
  ready.WaitForNotification();
  FUZZ_CHECK((*execution)->status().ok(), (*execution)->status().ToString());
  grpc::ByteBuffer response;
  FUZZ_CHECK(infer.Encode(*execution, 0, response), "no outputs");
  CheckResponse(request, *infer.model(), Parse(response), Expected(desc, std::move(inputs)));
  backend.executor->Finish(*execution);
  return true;
}

void Request(Backend& backend, const fuzz::InferCase& c) {
  const std::string bytes = c.request().SerializeAsString() + c.tail();
  const bool is_accepted = Infer(backend, bytes, c.cut());
  ModelInferRequest request;
  // Beyond, the number of parts may be refused, and protobuf may merge some.
  if (bytes.size() > kMaxChunksPerMessage || !request.ParseFromString(bytes)) return;
  FUZZ_CHECK(Infer(backend, request.SerializeAsString(), 0) == is_accepted,
             "protobuf's form of the request is not accepted in the same way");
}

absl::StatusOr<std::shared_ptr<Model>> ReadConfig(const std::string& text) {
  absl::StatusOr<ParsedConfig> parsed = ParseConfig("model", text);
  if (!parsed.ok()) return parsed.status();
  return MakeOperatorModel(parsed->config);
}

void Configuration(const fuzz::InferCase& c) {
  std::string text = c.config_text();
  if (text.empty()) google::protobuf::TextFormat::PrintToString(c.config(), &text);
  const absl::StatusOr<std::shared_ptr<Model>> model = ReadConfig(text);
  if (!model.ok()) {
    FUZZ_CHECK(absl::IsInvalidArgument(model.status()) && IsSentence(model.status()),
               model.status().ToString());
    return;
  }
  inference::ModelConfig config;
  EncodeConfig(**model, config);
  config.mutable_version_policy()->mutable_specific()->add_versions(std::stoll((*model)->version));
  google::protobuf::TextFormat::PrintToString(config, &text);
  const absl::StatusOr<std::shared_ptr<Model>> again = ReadConfig(text);
  FUZZ_CHECK(again.ok(), again.status().ToString(), " ", text);
  inference::ModelMetadataResponse metadata;
  inference::ModelMetadataResponse metadata_again;
  EncodeMetadata(**model, metadata);
  EncodeMetadata(**again, metadata_again);
  FUZZ_CHECK(metadata.SerializeAsString() == metadata_again.SerializeAsString(), text);
}

void Run(const fuzz::InferCase& c) {
  static Backend backend;
  if (c.has_request() || !c.tail().empty()) Request(backend, c);
  if (c.has_config() || !c.config_text().empty()) Configuration(c);
}

}  // namespace
}  // namespace opmill::oip

OPMILL_FUZZ_MESSAGE(opmill::fuzz::InferCase, opmill::oip::Run)
