#include "server/oip/inference_service.h"

#include <memory>
#include <string>
#include <utility>

#include "server/api/call_context.h"
#include "server/api/grpc_status.h"
#include "server/api/server_info.h"
#include "server/config/version.h"
#include "server/oip/model_infer_call.h"
#include "server/oip/model_metadata.h"
#include "server/oip/model_stream_infer_call.h"
#include "server/oip/repository_call.h"
#include "server/shared_memory/region_table.h"
#include "server/shared_memory/shared_tensors.h"

namespace opmill::oip {
namespace {

constexpr const char* kExtensions[] = {"model_configuration", "model_repository", "parameters",
                                       "statistics"};

absl::Status NoCudaSharedMemory() {
  return absl::UnimplementedError(
      "This server has no CUDA shared memory; system shared memory and raw_input_contents hold the "
      "same tensors.");
}

absl::Status NoTraceSettings() {
  return absl::UnimplementedError(
      "This server has no trace settings; its log has a line for each request, with the stages and "
      "the traceparent of the call.");
}

absl::Status NoLogSettings() {
  return absl::UnimplementedError(
      "The log is not set by a call: start the server with --log_level, --log_format and "
      "--log_file.");
}

// The models that a request means: all of them if it names none.
absl::StatusOr<std::vector<std::shared_ptr<const Model>>> Select(const ModelTable& models,
                                                                 const std::string& name,
                                                                 const std::string& version) {
  if (name.empty()) return models.All();
  absl::StatusOr<std::shared_ptr<const Model>> model = models.Find(name, version);
  if (!model.ok()) return model.status();
  if (version.empty()) return models.VersionsOf(name);
  return std::vector{*std::move(model)};
}

const char* NameOf(ModelState state) {
  switch (state) {
    case ModelState::kReady:
      return "READY";
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

}  // namespace

InferenceService::InferenceService(const ServiceParts& parts, const ModelTable& models,
                                   ModelRepository& repository, std::function<bool()> is_ready)
    : parts_(parts), models_(models), is_ready_(std::move(is_ready)) {
  RegisterCall<ModelInferCall>("ModelInfer", parts_);
  RegisterRaw("ModelStreamInfer", [this](auto* context) { return BeginStreamInfer(context); });
  RegisterCall<RepositoryCall>("RepositoryModelLoad", parts_, RepositoryCall::Kind::kLoad,
                               &repository);
  RegisterCall<RepositoryCall>("RepositoryModelUnload", parts_, RepositoryCall::Kind::kUnload,
                               &repository);
}

RawReactor* InferenceService::BeginStreamInfer(grpc::CallbackServerContext* context) {
  RequestOrigin origin;
  absl::Status begun = BeginRaw("ModelStreamInfer", parts_, *context, origin);
  if (begun.ok()) begun = parts_.executor.BeginStream(origin);
  if (!begun.ok()) return Refuse(parts_, origin, begun);
  return ModelStreamInferCall::Start(*context, std::move(origin), parts_.executor,
                                     parts_.open_calls, models_, parts_.models.programs,
                                     {parts_.shared_memory, parts_.tensors},
                                     parts_.limits.max_executions_per_stream);
}

RequestOrigin InferenceService::Begin(absl::string_view rpc,
                                      grpc::CallbackServerContext& context) const {
  return BeginCall(rpc, context, parts_.access, parts_.connections);
}

grpc::ServerUnaryReactor* InferenceService::Answer(absl::string_view rpc,
                                                   grpc::CallbackServerContext& context,
                                                   const absl::Status& status) const {
  return Answer(Begin(rpc, context), context, status);
}

grpc::ServerUnaryReactor* InferenceService::Answer(const RequestOrigin& origin,
                                                   grpc::CallbackServerContext& context,
                                                   const absl::Status& status) const {
  return opmill::Answer(parts_, origin, context, status);
}

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const inference::ServerLiveRequest*,
                                                       inference::ServerLiveResponse* response) {
  response->set_live(true);
  return Answer("ServerLive", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const inference::ServerReadyRequest*,
                                                        inference::ServerReadyResponse* response) {
  response->set_ready(is_ready_());
  return Answer("ServerReady", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const inference::ModelReadyRequest* request,
                                                       inference::ModelReadyResponse* response) {
  response->set_ready(is_ready_() && models_.Find(request->name(), request->version()).ok());
  return Answer("ModelReady", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest*,
    inference::ServerMetadataResponse* response) {
  response->set_name("opmill");
  response->set_version(kVersion);
  for (const char* const extension : kExtensions) response->add_extensions(extension);
  if (parts_.shared_memory.is_allowed()) response->add_extensions("system_shared_memory");
  return Answer("ServerMetadata", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(
    grpc::CallbackServerContext* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  const auto model = models_.Find(request->name(), request->version());
  if (model.ok()) {
    EncodeMetadata(**model, *response);
    for (const auto& version : models_.VersionsOf(request->name())) {
      response->add_versions(version->version);
    }
  }
  return Answer("ModelMetadata", *context, model.status());
}

grpc::ServerUnaryReactor* InferenceService::ModelConfig(
    grpc::CallbackServerContext* context, const inference::ModelConfigRequest* request,
    inference::ModelConfigResponse* response) {
  const auto model = models_.Find(request->name(), request->version());
  if (model.ok()) EncodeConfig(**model, *response->mutable_config());
  return Answer("ModelConfig", *context, model.status());
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(
    grpc::CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
    inference::ModelStatisticsResponse* response) {
  const auto models = Select(models_, request->name(), request->version());
  if (models.ok()) {
    for (const std::shared_ptr<const Model>& model : *models) {
      inference::ModelStatistics& to = *response->add_model_stats();
      model->statistics->Encode(to);
      to.set_name(model->name);
      to.set_version(model->version);
    }
  }
  return Answer("ModelStatistics", *context, models.status());
}

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(
    grpc::CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
    inference::RepositoryIndexResponse* response) {
  for (const IndexEntry& entry : models_.Index()) {
    if (request->ready() && entry.state != ModelState::kReady) continue;
    inference::RepositoryIndexResponse::ModelIndex& to = *response->add_models();
    to.set_name(entry.name);
    to.set_version(entry.version);
    to.set_state(NameOf(entry.state));
    to.set_reason(entry.reason);
  }
  return Answer("RepositoryIndex", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryStatus(
    grpc::CallbackServerContext* context, const inference::SystemSharedMemoryStatusRequest* request,
    inference::SystemSharedMemoryStatusResponse* response) {
  const RequestOrigin origin = Begin("SystemSharedMemoryStatus", *context);
  const std::string& name = request->name();
  for (const SharedRegion& region : parts_.shared_memory.Regions(origin.caller)) {
    if (!name.empty() && region.name != name) continue;
    auto& to = (*response->mutable_regions())[region.name];
    to.set_name(region.name);
    to.set_key(region.key);
    to.set_offset(region.offset);
    to.set_byte_size(region.byte_size);
  }
  const bool is_found = name.empty() || !response->regions().empty();
  return Answer(origin, *context, is_found ? absl::OkStatus() : NoRegion(name));
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryRegister(
    grpc::CallbackServerContext* context,
    const inference::SystemSharedMemoryRegisterRequest* request,
    inference::SystemSharedMemoryRegisterResponse*) {
  const RequestOrigin origin = Begin("SystemSharedMemoryRegister", *context);
  return Answer(origin, *context,
                parts_.shared_memory.Register(
                    SharedMemoryCallerOf(origin),
                    {request->name(), request->key(), request->offset(), request->byte_size()}));
}

// As in Triton, it is no error if there is no such region.
grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryUnregister(
    grpc::CallbackServerContext* context,
    const inference::SystemSharedMemoryUnregisterRequest* request,
    inference::SystemSharedMemoryUnregisterResponse*) {
  const RequestOrigin origin = Begin("SystemSharedMemoryUnregister", *context);
  if (request->name().empty()) {
    parts_.shared_memory.UnregisterAll(origin.caller);
  } else {
    parts_.shared_memory.Unregister(origin.caller, request->name());
  }
  return Answer(origin, *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryStatus(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryStatusRequest*,
    inference::CudaSharedMemoryStatusResponse*) {
  return Answer("CudaSharedMemoryStatus", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryRegister(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryRegisterRequest*,
    inference::CudaSharedMemoryRegisterResponse*) {
  return Answer("CudaSharedMemoryRegister", *context, NoCudaSharedMemory());
}

// perf_analyzer unregisters all regions before it starts; none is registered.
grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const inference::CudaSharedMemoryUnregisterRequest*,
    inference::CudaSharedMemoryUnregisterResponse*) {
  return Answer("CudaSharedMemoryUnregister", *context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::TraceSetting(grpc::CallbackServerContext* context,
                                                         const inference::TraceSettingRequest*,
                                                         inference::TraceSettingResponse*) {
  return Answer("TraceSetting", *context, NoTraceSettings());
}

grpc::ServerUnaryReactor* InferenceService::LogSettings(grpc::CallbackServerContext* context,
                                                        const inference::LogSettingsRequest*,
                                                        inference::LogSettingsResponse*) {
  return Answer("LogSettings", *context, NoLogSettings());
}

}  // namespace opmill::oip
