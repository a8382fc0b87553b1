#include "server/server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "grpc/health/v1/health.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"
#if OPMILL_CPU_DEVICE
#include "kernels/cpu/device/cpu_device.h"
#endif
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/engine/paired_device.h"
#include "kernels/reference/device/reference_device.h"
#include "server/config/connection_plan.h"
#include "server/execution/execution_queues.h"
#include "server/execution/prepare_model.h"
#include "server/host/host_memory.h"
#include "server/host/open_files.h"
#include "server/network/call_budget.h"
#include "server/network/listen_address.h"
#include "server/network/transport_rules.h"
#include "server/observe/log.h"
#include "server/tensors/tensor_files.h"

namespace opmill {
namespace {

constexpr int kStreamLookaheadBytes = 8 << 20;
// Those with tensors or files of models. All others, those of gRPC's own services included, take
// small messages.
constexpr std::array<absl::string_view, 7> kLargeMethods = {
    "/opmill.v1.OperatorService/Execute",
    "/opmill.v1.OperatorService/ExecuteStream",
    "/opmill.v1.OperatorService/CompileOperator",
    "/opmill.v1.OperatorService/DescribeModel",
    "/opmill.v1.OperatorService/ExplainModel",
    "/inference.GRPCInferenceService/ModelInfer",
    "/inference.GRPCInferenceService/ModelStreamInfer"};
constexpr absl::string_view kMethodWithFiles =
    "/inference.GRPCInferenceService/RepositoryModelLoad";
constexpr uint32_t kMostBytesOfOthers = uint32_t{64} << 10;
// Open calls, without their messages, may take a half of the memory of the transport.
constexpr uint64_t kShareOfCalls = 2;
constexpr int kKeepaliveMilliseconds = 30'000;
// The time for the TLS handshake and the HTTP/2 preface of a connection.
constexpr int kHandshakeMilliseconds = 5'000;
// Clients reconnect by themselves.
constexpr int kIdleConnectionMilliseconds = 15 * 60'000;
// Kernels that were compiled before a restart are made live before the first request, within this
// time.
constexpr absl::Duration kPreload = absl::Milliseconds(500);
// What goes to the processor beside a GPU (--small_work). An argmin of 1 MiB takes 91 us there, and
// 204 us on an H100, which copies it and wakes two threads; with 4 MiB they are equal:
// docs/notes/cpu-device.md.
constexpr uint64_t kSmallBytes = uint64_t{1} << 20;
// The time for the last bytes of calls that have ended, and for health watchers, which never end by
// themselves.
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);
// The time for the last spans of calls.
constexpr absl::Duration kTraceGrace = absl::Seconds(1);

void LogAdapter(const AdapterInfo& adapter, const absl::Status& opened) {
  LogLine(opened.ok() ? LogLevel::kInfo : LogLevel::kWarning, "adapter")
      .Add("index", uint64_t{adapter.index})
      .Add("name", adapter.name)
      .Add("kind", adapter.kind == DeviceKind::kHardware ? "hardware" : "software")
      .Add("driver", adapter.driver)
      .Add("groups", uint64_t{adapter.size.groups})
      .Add(opened);
  if (!opened.ok()) return;
  for (const OldDriver& old : adapter.old_drivers) {
    LogLine(LogLevel::kWarning, "driver_too_old")
        .Add("driver", old.driver)
        .Add("version", old.version)
        .Add("required", old.required)
        .Add("error", old.Sentence());
  }
}

void LogCacheProblem(const std::string& sentence) {
  LogLine(LogLevel::kWarning, "shader_cache").Add("error", sentence);
}

#if OPMILL_CPU_DEVICE
constexpr bool kHasCpu = true;
#else
constexpr bool kHasCpu = false;
#endif

absl::StatusOr<std::unique_ptr<Device>> OpenCpu(const ServerOptions& options,
                                                const MemoryPlan& memory, uint64_t max_idle_bytes) {
#if OPMILL_CPU_DEVICE
  return CreateCpuDevice({.max_buffer_bytes = memory.buffer_bytes + memory.resident_tensor_bytes,
                          .max_scratch_bytes = options.limits.max_scratch_bytes,
                          .max_idle_bytes = max_idle_bytes});
#else
  static_cast<void>(options);
  static_cast<void>(memory);
  static_cast<void>(max_idle_bytes);
  return absl::UnimplementedError(
      "This server was built without Highway, which --device=cpu and --standby=on need.");
#endif
}

// As ProgramCost::run_bytes of the processor's device.
uint64_t SmallBytes(SmallWork small_work) {
  switch (small_work) {
    case SmallWork::kGpu:
      return 0;
    case SmallWork::kCpu:
      return kLargeBytes - 1;
    case SmallWork::kAuto:
      break;
  }
  return kSmallBytes;
}

absl::StatusOr<std::unique_ptr<Device>> OpenAdapter(
    AdapterChoice choice, const ServerOptions& options, const MemoryPlan& memory,
    std::function<void(const absl::Status&)> on_availability) {
  const StandbyChoice wanted = options.device.standby;
  const bool is_paired =
      wanted == StandbyChoice::kOn ||
      (wanted == StandbyChoice::kAuto && choice == AdapterChoice::kHardware && kHasCpu);
  const auto is_available = std::make_shared<std::atomic<bool>>(true);
  ASSIGN_OR_RETURN(
      std::unique_ptr<Device> device,
      CreateD3D12Device({.choice = choice,
                         .adapter = options.device.adapter,
                         .on_adapter = &LogAdapter,
                         .on_availability =
                             [is_available, on_availability = std::move(on_availability)](
                                 const absl::Status& status) {
                               is_available->store(status.ok());
                               on_availability(status);
                             },
                         .shader_cache_directory = options.device.shader_cache_directory,
                         .on_cache_problem = &LogCacheProblem,
                         .max_host_bytes = memory.buffer_bytes + memory.resident_tensor_bytes,
                         .max_scratch_bytes = options.limits.max_scratch_bytes,
                         .max_idle_bytes = options.limits.max_idle_bytes,
                         .max_live_kernels = memory.live_kernels(),
                         .measure_device_time = false}));
  if (!is_paired) return device;
  // What it keeps after a loss is of no use until the next one.
  ASSIGN_OR_RETURN(std::unique_ptr<Device> cpu,
                   OpenCpu(options, memory, options.limits.max_idle_bytes / 8));
  return CreatePairedDevice(
      std::move(device), std::move(cpu),
      {.small_bytes = SmallBytes(options.device.small_work), .first_is_available = is_available});
}

// Hardware if available, else the processor. A named adapter is used regardless of its kind.
absl::StatusOr<std::unique_ptr<Device>> OpenBest(
    const ServerOptions& options, const MemoryPlan& memory,
    std::function<void(const absl::Status&)> on_availability) {
  absl::StatusOr<std::unique_ptr<Device>> hardware =
      OpenAdapter(AdapterChoice::kHardware, options, memory, on_availability);
  if (hardware.ok()) return hardware;
  if (!options.device.adapter.empty()) {
    if (!absl::IsNotFound(hardware.status())) return hardware;
    return OpenAdapter(AdapterChoice::kAuto, options, memory, std::move(on_availability));
  }
  absl::StatusOr<std::unique_ptr<Device>> cpu =
      OpenCpu(options, memory, options.limits.max_idle_bytes);
  if (cpu.ok()) return cpu;
  return OpenAdapter(AdapterChoice::kSoftware, options, memory, std::move(on_availability));
}

absl::StatusOr<std::unique_ptr<Device>> CreateDevice(
    const ServerOptions& options, const MemoryPlan& memory,
    std::function<void(const absl::Status&)> on_availability) {
  switch (options.device.choice) {
    case DeviceChoice::kReference:
      return CreateReferenceDevice(
          {.max_buffer_bytes = memory.buffer_bytes + memory.resident_tensor_bytes,
           .max_scratch_bytes = options.limits.max_scratch_bytes});
    case DeviceChoice::kCpu:
      return OpenCpu(options, memory, options.limits.max_idle_bytes);
    case DeviceChoice::kHardware:
      return OpenAdapter(AdapterChoice::kHardware, options, memory, std::move(on_availability));
    case DeviceChoice::kSoftware:
      return OpenAdapter(AdapterChoice::kSoftware, options, memory, std::move(on_availability));
    case DeviceChoice::kAuto:
      break;
  }
  return OpenBest(options, memory, std::move(on_availability));
}

SharedMemory::Users UsersOfSharedMemory(const ServerOptions& options) {
  if (!AllowsSharedMemory(options)) return SharedMemory::Users::kNone;
  return options.shared_memory == SharedMemoryChoice::kOn ? SharedMemory::Users::kAll
                                                          : SharedMemory::Users::kServerAndCaller;
}

absl::Status DecideConnections(bool serves_http, Limits& limits) {
  const bool is_default = limits.max_connections == 0;
  const uint64_t open_files = AllowOpenFiles(FilesFor(limits.max_connections, serves_http));
  RETURN_IF_ERROR(LimitConnections(open_files, serves_http, limits));
  if (is_default && limits.max_connections < kDefaultConnections) {
    LogLine(LogLevel::kWarning, "few_files")
        .Add("open_files", open_files)
        .Add("max_connections", uint64_t{limits.max_connections});
  }
  return absl::OkStatus();
}

// Both directions are limited already.
grpc::ChannelArguments InProcessArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return arguments;
}

bool CanBeLost(DeviceKind kind) {
  return kind == DeviceKind::kHardware || kind == DeviceKind::kSoftware;
}

std::string CallersNeed(const AccessOptions& access) {
  std::vector<std::string> needs;
  if (access.uses_tls()) needs.push_back("tls");
  if (!access.tls_client_ca.empty()) needs.push_back("certificate");
  if (!access.token_file.empty()) needs.push_back("token");
  return needs.empty() ? "nothing" : absl::StrJoin(needs, ",");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Create(const ServerOptions& options,
                                                       const std::stop_token& stopped) {
  std::unique_ptr<Server> server(new Server(options));
  RETURN_IF_ERROR(server->Initialize(stopped));
  return server;
}

absl::Status Server::Initialize(const std::stop_token& stopped) {
  Limits& limits = options_.limits;
  ASSIGN_OR_RETURN(memory_, DivideMemory(HostMemoryBytes(),
                                         {.repository = !options_.repository.folder.empty(),
                                          .http = !options_.http_address.empty()},
                                         limits));
  RETURN_IF_ERROR(DecideConnections(!options_.http_address.empty(), limits));
  ASSIGN_OR_RETURN(access_, Access::Create(options_.access));
  model_budget_ =
      std::make_shared<ByteBudget>(limits.max_total_model_bytes, "max_total_model_bytes");
  const onnx::ModelLimits model_limits = {.read = {.memory_bytes = limits.max_model_bytes},
                                          .constant_bytes = limits.max_model_constant_bytes,
                                          .budget = model_budget_};
  onnx::ModelLimits inline_limits = model_limits;
  inline_limits.budget = std::make_shared<ByteBudget>(limits.max_inline_model_bytes,
                                                      "max_inline_model_bytes", model_budget_);
  inline_models_ =
      std::make_unique<InlineModels>(InlineModelLimits{limits.max_inline_models, inline_limits});
  model_budget_->SetMakeRoom([this] { return inline_models_->DropOldest(); });
  connections_ = std::make_shared<Connections>(limits);
  ASSIGN_OR_RETURN(device_, CreateDevice(options_, memory_, [this](const absl::Status& status) {
                     DeviceChanged(status);
                   }));
  device_->Preload(SteadyNow() + kPreload);
  cache_ = OperatorCache::Create(*device_, {.capacity = limits.operator_cache_capacity,
                                            .max_bytes = memory_.operator_bytes,
                                            .max_kernels = memory_.live_kernels()});
  tensors_ = std::make_unique<TensorStore>(
      *device_,
      ResidentTensorLimits{limits.max_resident_tensor_bytes,
                           limits.max_resident_tensor_bytes_per_owner},
      options_.tensor_copies && CanBeLost(device_->info().kind));
  if (CanBeLost(device_->info().kind) &&
      (options_.tensor_copies || !options_.tensor_folder.empty())) {
    put_back_ = std::make_unique<WorkerPool>(1);
  }
  RETURN_IF_ERROR(ServeTensorFiles());
  if (!options_.traces.endpoint.empty()) {
    ASSIGN_OR_RETURN(traces_, Traces::Create(options_.traces, device_->info().name));
  }
  executor_ = std::make_unique<Executor>(*device_, *cache_, statistics_, limits, traces_.get());
  programs_ = std::make_shared<ModelPrograms>(*executor_, limits.max_queued);
  housekeeper_ = std::make_unique<Housekeeper>(*device_, *cache_, *tensors_, *executor_,
                                               open_calls_, *connections_, limits);
  shared_memory_ = std::make_unique<SharedMemory>(UsersOfSharedMemory(options_),
                                                  limits.max_shared_memory_regions);
  const ServiceParts parts = {*device_,
                              *cache_,
                              *executor_,
                              statistics_,
                              open_calls_,
                              *access_,
                              *connections_,
                              *shared_memory_,
                              *tensors_,
                              limits,
                              {models_, *inline_models_, *programs_, *model_budget_}};
  const std::stop_callback stops(stopped, [this] { executor_->Drain(); });
  ASSIGN_OR_RETURN(
      repository_,
      ModelRepository::Open(options_.repository, model_limits, executor_->compile_limit(), models_,
                            [this](const auto& model) { return PrepareModel(*executor_, model); }));
  if (stopped.stop_requested()) return CompileLimit::ServerStops();
  service_ = std::make_unique<OperatorService>(parts);
  const auto readiness = [this] {
    const absl::MutexLock lock(&phase_mutex_);
    return ReadinessNow();
  };
  inference_service_ = std::make_unique<oip::InferenceService>(
      parts, models_, *repository_, [readiness] { return readiness().is_ready; });
  LimitTransports();
  RETURN_IF_ERROR(Listen());
  if (!options_.http_address.empty()) {
    ASSIGN_OR_RETURN(
        rest_, RestServer::Listen(options_.http_address,
                                  {*access_, *executor_, open_calls_, limits, memory_.http_bytes,
                                   grpc_server_->InProcessChannel(InProcessArguments())}));
  }
  if (!options_.metrics_address.empty()) {
    const MetricsSources sources = {*device_,        *cache_,        *tensors_, *executor_,
                                    statistics_,     open_calls_,    *access_,  models_,
                                    *inline_models_, *model_budget_, limits,    *connections_,
                                    rest_.get(),     traces_.get()};
    ASSIGN_OR_RETURN(metrics_, ListenForMetrics(options_.metrics_address, sources, readiness));
  }
  RETURN_IF_ERROR(listener_->Start());
  for (const char* const name : {v1::OperatorService::service_full_name(),
                                 inference::GRPCInferenceService::service_full_name()}) {
    grpc_server_->GetHealthCheckService()->SetServingStatus(name, true);
  }
  {
    const absl::MutexLock lock(&phase_mutex_);
    phase_ = Phase::kServing;
    // Calls, and the preparation of models, may have come before a loss that DeviceChanged passed
    // over.
    if (device_->counters().resets > 0) {
      cache_->Invalidate();
      tensors_->DeviceLost();
      PutTensorsBack();
    }
    Announce();
  }
  const DeviceInfo& info = device_->info();
  LogLine line(LogLevel::kInfo, "serving");
  line.Add("address", absl::StrJoin(addresses(), ","));
  if (rest_ != nullptr) line.Add("http_address", rest_->address());
  if (metrics_ != nullptr) line.Add("metrics_address", metrics_->address());
  line.Add("callers_need", CallersNeed(options_.access))
      .Add("shared_memory", shared_memory_->is_allowed() ? "on" : "off")
      .Add("adapter", info.name)
      .Add("driver", info.driver);
  if (device_->standby() != nullptr) line.Add("standby", device_->standby()->name);
  line.Add("preloaded_kernels", device_->counters().pipelines_created)
      .Add("memory_limit", limits.memory_limit)
      .Add("buffer_bytes", memory_.buffer_bytes)
      .Add("transport_bytes", memory_.transport_bytes)
      .Add("max_message_bytes", limits.max_message_bytes)
      .Add("max_bytes_in_flight", limits.max_bytes_in_flight)
      .Add("max_scratch_bytes", limits.max_scratch_bytes);
  return absl::OkStatus();
}

absl::Status Server::ServeTensorFiles() {
  if (options_.tensor_folder.empty()) return absl::OkStatus();
  const absl::Time begun = SteadyNow();
  ASSIGN_OR_RETURN(const std::vector<TensorFile> files, FindTensorFiles(options_.tensor_folder));
  for (const TensorFile& file : files) {
    const absl::Status served = tensors_->Serve(file.name, file.tensor, file.contents);
    if (served.ok()) continue;
    return absl::Status(served.code(), CannotBeServed(file.path, served));
  }
  const TensorStore::Totals totals = tensors_->totals();
  LogLine(LogLevel::kInfo, "tensors")
      .Add("folder", options_.tensor_folder)
      .Add("tensors", totals.tensors)
      .Add("bytes", totals.bytes)
      .Add("duration", SteadyNow() - begun);
  return absl::OkStatus();
}

void Server::PutTensorsBack() {
  if (put_back_ == nullptr) return;
  put_back_->Post([this] {
    const absl::Time begun = SteadyNow();
    const TensorStore::PutBackReport report = tensors_->PutBack();
    for (const absl::Status& failure : report.failures) {
      LogLine(LogLevel::kWarning, "tensor_lost").Add(failure);
    }
    LogLine(LogLevel::kInfo, "tensors_put_back")
        .Add("tensors", report.tensors)
        .Add("bytes", report.bytes)
        .Add("duration", SteadyNow() - begun);
  });
}

void Server::LimitTransports() {
  const Limits& limits = options_.limits;
  auto rules = std::make_shared<TransportRules>();
  rules->budget = std::make_shared<CallBudget>(memory_.transport_bytes / kShareOfCalls,
                                               limits.max_calls_per_connection);
  rules->message_limit = [most = static_cast<uint32_t>(limits.max_message_bytes),
                          takes_files = repository_->CheckControl().ok()](absl::string_view path) {
    const bool is_large = std::count(kLargeMethods.begin(), kLargeMethods.end(), path) > 0 ||
                          (takes_files && path == kMethodWithFiles);
    return is_large ? most : std::min(most, kMostBytesOfOthers);
  };
  rules->close = [connections = connections_](const std::string& peer, Connections::Reason reason) {
    connections->Close(peer, reason, SteadyNow());
  };
  SetTransportRules(std::move(rules));
}

absl::Status Server::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::health::v1::HealthCheckRequest::descriptor();  // links the descriptor for reflection
  grpc::ServerBuilder builder;
  builder.RegisterService(service_.get());
  builder.RegisterService(inference_service_.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.limits.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  // gRPC 1.51 has no limit on what a compressed message expands to.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Beyond this, gRPC closes idle connections, and ends calls until it has room.
  grpc::ResourceQuota quota("opmill");
  quota.Resize(memory_.transport_bytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(options_.limits.max_calls_per_connection));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMilliseconds);
  // How far a stream may be ahead of the server: up to this size, but for one connection no more
  // than 64 KiB plus, for each stream whose message has arrived, the rest of its next message, up
  // to 1 MiB. With the BDP probe gRPC would estimate the network and, on loopback, buffer 100 MB
  // for a stream that it reads faster than the server copies. Messages of 64 KiB would then arrive
  // twice as fast, but messages of 1 MiB would not, at twice the caller's processor time.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamLookaheadBytes);
  // Detects a caller whose machine or network is gone, so that its executions end.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  ASSIGN_OR_RETURN(listener_, Listener::Create(
                                  options_.addresses, *connections_,
                                  [this] { return access_->MakeCredentials(); }, builder));
  grpc_server_ = builder.BuildAndStart();
  return grpc_server_ == nullptr ? CannotListen(options_.addresses) : absl::OkStatus();
}

// Called on a thread of the device.
void Server::DeviceChanged(const absl::Status& status) {
  LogLine line(status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
               status.ok() ? "device_back" : "device_lost");
  line.Add(status);
  const absl::MutexLock lock(&phase_mutex_);
  device_is_available_ = status.ok();
  if (phase_ != Phase::kServing && phase_ != Phase::kDraining) return;
  line.Add("resets", device_->counters().resets);
  if (!status.ok() && device_->standby() != nullptr) line.Add("standby", device_->standby()->name);
  if (status.ok()) {
    cache_->Invalidate();  // its operators belong to the lost device
    PutTensorsBack();
  } else {
    tensors_->DeviceLost();
    if (device_->standby() != nullptr) PutTensorsBack();  // in its memory, until the device is back
  }
  Announce();
}

void Server::Announce() {
  grpc_server_->GetHealthCheckService()->SetServingStatus(ReadinessNow().is_ready);
}

Readiness Server::ReadinessNow() const {
  switch (phase_) {
    case Phase::kStarting:
      return {false, "starting"};
    case Phase::kServing:
      if (device_is_available_) return {true, "ready"};
      if (device_->standby() != nullptr) return {true, "ready, on standby: device lost"};
      return {false, "device lost"};
    case Phase::kDraining:
    case Phase::kStopped:
      break;
  }
  return {false, "draining"};
}

Server::~Server() {
  {
    const absl::MutexLock lock(&phase_mutex_);
    phase_ = Phase::kStopped;
  }
  listener_.reset();
  rest_.reset();
  if (grpc_server_ == nullptr) return;
  AbortInFlight();
  // Cancels calls that do not end by themselves, such as writes to callers that do not read.
  grpc_server_->Shutdown(std::chrono::system_clock::now() +
                         absl::ToChronoMicroseconds(kShutdownGrace));
  grpc_server_->Wait();
}

absl::Status Server::Drain() {
  const absl::Status drained = DrainCalls();
  if (traces_ != nullptr) traces_->Stop(kTraceGrace);
  return drained;
}

absl::Status Server::DrainCalls() {
  const absl::Time deadline = SteadyNow() + options_.drain_timeout;
  {
    const absl::MutexLock lock(&phase_mutex_);
    phase_ = Phase::kDraining;
    Announce();
  }
  executor_->Drain();
  LogLine(LogLevel::kInfo, "draining")
      .Add("executions", uint64_t{executor_->open_executions()})
      .Add("streams", uint64_t{open_calls_.streams()});
  open_calls_.DrainAll();
  if (open_calls_.WaitUntilNone(deadline)) {
    if (cut_executions_ == 0) return absl::OkStatus();
    return absl::CancelledError(absl::StrCat("A second signal ended ", cut_executions_.load(),
                                             " executions that were under way."));
  }
  absl::Status late = absl::DeadlineExceededError(
      absl::StrCat("The drain timeout (", absl::FormatDuration(options_.drain_timeout),
                   ") passed with ", executor_->open_executions(), " executions under way."));
  AbortInFlight();
  open_calls_.WaitUntilNone(SteadyNow() + kShutdownGrace);
  return late;
}

void Server::AbortInFlight() {
  executor_->Drain();
  cut_executions_ = executor_->open_executions();
  open_calls_.AbortAll(absl::UnavailableError("The server stopped before the execution ended."));
}

}  // namespace opmill
