#include "server/flags/flags.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "kernels/base/errors.h"
#include "kernels/base/nearest.h"
#include "kernels/base/server_address.h"
#include "kernels/d3d12/shader/bytecode_cache.h"
#include "server/config/byte_size.h"
#include "server/config/caller_limits.h"
#include "server/config/memory_plan.h"
#include "server/config/version.h"
#include "server/flags/flag_files.h"
#include "server/flags/flag_parser.h"
#include "server/host/host_memory.h"
#include "server/network/listen_address.h"

ABSL_FLAG(
    std::vector<std::string>, address, std::vector<std::string>({"127.0.0.1:50051"}),
    "The addresses to listen at, as host:port, separated by commas. Port 0 takes a free port.");
ABSL_FLAG(
    std::string, http_address, "",
    "The address that serves the Open Inference Protocol over HTTP, as host:port; empty: none. "
    "TLS and tokens are those of --address.");
ABSL_FLAG(std::string, metrics_address, "",
          "The address that serves /metrics (Prometheus), /healthz and /readyz over HTTP, as "
          "host:port; empty: none.");
ABSL_FLAG(bool, insecure, false, "Allows clear text at addresses that other machines can reach.");
ABSL_FLAG(std::string, tls_cert, "",
          "The file with the server's certificate and the intermediate certificates (PEM). With it "
          "and --tls_key, callers must use TLS. Changed files are read again.");
ABSL_FLAG(std::string, tls_key, "", "The file with the key of the certificate (PEM).");
ABSL_FLAG(std::string, tls_client_ca, "",
          "The file with the authorities (PEM) that sign the certificates of callers; empty: "
          "callers need no certificate.");
ABSL_FLAG(std::string, token_file, "",
          "The file with a name and a bearer token on each line. Every call must present one of "
          "the tokens. Empty: no token is needed.");
ABSL_FLAG(std::string, model_repository, "",
          "The folder with models for the Open Inference Protocol: one folder for each model, with "
          "a config.pbtxt, or a folder for a version with a model.onnx. Empty: only the built-in "
          "models.");
ABSL_FLAG(std::string, model_control_mode, "poll",
          "When the model repository is read: none (once, at the start), poll (looks for changes "
          "each second), or explicit (--load_model at the start, then the models that callers load "
          "and unload).");
ABSL_FLAG(std::vector<std::string>, load_model, {},
          "With --model_control_mode=explicit, the models that are loaded at the start, separated "
          "by commas; *: all.");
ABSL_FLAG(std::string, tensors, "",
          "The folder whose .npy files are tensors that stay on the server from its start: every "
          "caller reads them, by the name of the file without .npy, and none changes them. They "
          "count against --max_resident_tensor_bytes. Empty: none.");
ABSL_FLAG(std::string, device, "auto",
          "What computes: auto (hardware, or cpu without hardware), hardware, software (the code "
          "for hardware, on a driver that computes on the processor), cpu (the vector instructions "
          "of the processor; needs no driver), or reference (exact and slow; needs no driver).");
ABSL_FLAG(std::string, adapter, "",
          "The adapter: its index from --list_adapters, or part of its name. Empty: the best one.");
ABSL_FLAG(std::string, standby, "auto",
          "Whether the processor computes while the adapter is lost, and takes small executions: "
          "auto (with hardware), on (with software too), or off.");
ABSL_FLAG(std::string, small_work, "auto",
          "With a standby, where small executions run: auto (up to 1 MiB on the processor), gpu "
          "(all on the adapter), or cpu (up to 4 MiB on the processor).");
ABSL_FLAG(bool, list_adapters, false, "Lists the adapters of this machine and exits.");
ABSL_FLAG(std::string, shader_cache, "default",
          "The directory that keeps compiled shaders across restarts; empty: none. The default is "
          "opmill in the user's cache directory.");
ABSL_FLAG(opmill::ByteSize, memory_limit, {opmill::Limits().memory_limit},
          "The memory that the process may use. 0: three quarters of what the machine, container "
          "or job has. Limits in bytes that are not set are derived from it.");
ABSL_FLAG(opmill::ByteSize, max_message_bytes, {opmill::Limits().max_message_bytes},
          "The longest message that the server accepts.");
ABSL_FLAG(opmill::ByteSize, max_response_chunk_bytes, {opmill::Limits().max_response_chunk_bytes},
          "The most tensor bytes in one response message.");
ABSL_FLAG(opmill::ByteSize, max_tensor_bytes, {opmill::Limits().max_tensor_bytes},
          "The largest tensor.");
ABSL_FLAG(opmill::ByteSize, max_bytes_in_flight, {opmill::Limits().max_bytes_in_flight},
          "Inputs and outputs of all executions in progress. 0: about half of --memory_limit.");
ABSL_FLAG(
    opmill::ByteSize, max_scratch_bytes, {opmill::Limits().max_scratch_bytes},
    "Memory of one operator in addition to its tensors. 0: about a quarter of --memory_limit.");
ABSL_FLAG(uint32_t, max_executions, opmill::Limits().max_executions, "Executions in progress.");
ABSL_FLAG(uint32_t, max_queued, opmill::Limits().max_queued,
          "Executions that wait for the device. At this limit no new execution begins.");
ABSL_FLAG(uint32_t, max_executions_per_stream, opmill::Limits().max_executions_per_stream,
          "Executions in progress on one ExecuteStream call.");
ABSL_FLAG(uint32_t, max_streams, opmill::Limits().max_streams, "Open ExecuteStream calls.");
ABSL_FLAG(opmill::CallerLimits, caller_limits, {},
          "Limits on each caller, such as executions=64,bytes=2GiB,rate=1000/s: executions in "
          "progress, their inputs and outputs, and executions that begin per second. A caller is "
          "the holder of a token or certificate, else an address. Empty: a caller alone may have "
          "all that the server has.");
ABSL_FLAG(uint32_t, max_connections, opmill::Limits().max_connections,
          "Connections of callers. At this limit, a new connection replaces one that has made no "
          "call or is idle; if all are in use, it is refused. 0: 1024, or fewer if the process may "
          "open too few files for that.");
ABSL_FLAG(uint32_t, max_connections_per_address, opmill::Limits().max_connections_per_address,
          "Connections from one IP address. 0: three quarters of --max_connections.");
ABSL_FLAG(uint32_t, max_calls_per_connection, opmill::Limits().max_calls_per_connection,
          "Open calls on one connection; further calls wait in the client.");
ABSL_FLAG(uint32_t, operator_cache_capacity, opmill::Limits().operator_cache_capacity,
          "The most compiled operators that are kept.");
ABSL_FLAG(std::string, shared_memory, "auto",
          "Whether callers may keep tensors in shared memory, by the names of its segments: auto "
          "(if only this machine can reach the addresses, in segments of the server's and the "
          "caller's user), on (in segments of all users), or off.");
ABSL_FLAG(uint32_t, max_shared_memory_regions, opmill::Limits().max_shared_memory_regions,
          "Regions of shared memory that callers have registered.");
ABSL_FLAG(opmill::ByteSize, max_model_bytes, {opmill::Limits().max_model_bytes},
          "An ONNX model in memory, with its external data.");
ABSL_FLAG(
    opmill::ByteSize, max_total_model_bytes, {opmill::Limits().max_total_model_bytes},
    "The memory of all ONNX models: their graphs and the constants of their programs. 0: with "
    "a --model_repository an eighth of --memory_limit, at most a quarter of what the other parts "
    "leave; without one --max_inline_model_bytes.");
ABSL_FLAG(opmill::ByteSize, max_inline_model_bytes, {opmill::Limits().max_inline_model_bytes},
          "The part of it that ONNX models which callers have sent may take. 0: a sixteenth of "
          "--memory_limit, at most 1GiB and a quarter of what the other parts leave.");
ABSL_FLAG(uint32_t, max_inline_models, opmill::Limits().max_inline_models,
          "How many of these are kept; the least recently used is dropped. 0: none is accepted.");
ABSL_FLAG(opmill::ByteSize, max_model_constant_bytes, {opmill::Limits().max_model_constant_bytes},
          "The constants of an ONNX model for one set of input sizes: those of its file, and those "
          "that are computed from them.");
ABSL_FLAG(absl::Duration, max_model_compile_time, opmill::Limits().max_model_compile_time,
          "How long it may take to make and compile an ONNX model for one set of input sizes; a "
          "model that takes longer is refused. inf: no limit.");
ABSL_FLAG(
    opmill::ByteSize, max_resident_tensor_bytes, {opmill::Limits().max_resident_tensor_bytes},
    "Tensors that stay on the server between calls. 0: a sixteenth of --memory_limit, at most a "
    "half of what the other parts leave.");
ABSL_FLAG(opmill::ByteSize, max_resident_tensor_bytes_per_owner,
          {opmill::Limits().max_resident_tensor_bytes_per_owner},
          "Those of the holder of one token or certificate, or of all callers without one. 0: no "
          "limit of their own.");
ABSL_FLAG(bool, tensor_copies, false,
          "Keeps a copy of each tensor that stays, in the memory of the host, from which it is put "
          "back when the device is lost. The copies count too. No effect with the devices cpu and "
          "reference, which are not lost.");
ABSL_FLAG(opmill::ByteSize, max_idle_bytes, {opmill::Limits().max_idle_bytes},
          "Memory of ended executions that is kept for later ones.");
ABSL_FLAG(absl::Duration, stall_timeout, opmill::Limits().stall_timeout,
          "How long an execution waits for its caller to send missing input or to read its "
          "results; inf: forever.");
ABSL_FLAG(absl::Duration, drain_timeout, opmill::ServerOptions().drain_timeout,
          "How long executions in progress may continue after SIGTERM or SIGINT.");
ABSL_FLAG(std::string, trace_endpoint, "",
          "The collector that gets the spans of calls, by OTLP over gRPC, as host:port in clear "
          "text or https://host:port with TLS; empty: none.");
ABSL_FLAG(std::string, trace_ca, "",
          "With https, the file with the authorities (PEM) that sign the collector's certificate; "
          "empty: those of the system.");
ABSL_FLAG(
    double, trace_sample, opmill::TraceOptions().sample,
    "The part of the calls that are traced, 0 to 1, unless the caller decides: by the flag of "
    "its traceparent.");
ABSL_FLAG(std::string, log_file, "",
          "The file that the log is appended to, reopened on SIGHUP; empty: stderr.");
ABSL_FLAG(std::string, log_format, "text", "text or json.");
ABSL_FLAG(
    std::string, log_level, "info",
    "The lowest level that is logged: debug, info (a line for each request), warning or error.");
ABSL_FLAG(std::string, service, "none",
          "Windows: install (with the other flags) or uninstall the service OpMill; run is for the "
          "service manager.");

namespace opmill {
namespace {

// The words that a flag accepts, and their values.
template <typename T>
using Words = std::vector<std::pair<std::string, T>>;

template <typename T>
absl::Status ReadWord(absl::string_view flag, const std::string& word, const Words<T>& words,
                      T& value) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) {
    names.push_back(name);
    if (word != name) continue;
    value = meaning;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is \"", word, "\"; it must be one of ", absl::StrJoin(names, ", "),
                   ".", DidYouMean(word, names)));
}

absl::Status CheckCount(absl::string_view flag, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is ", value, "; it must be at least 1 and at most ", most, "."));
}

absl::Status CheckBytes(absl::string_view flag, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is ", FormatBytes(value),
                                                 "; it must be at least ", FormatBytes(least),
                                                 " and at most ", FormatBytes(most), "."));
}

// Libraries have flags too.
FlagsByName OurFlags() {
  FlagsByName flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), "server/flags/flags.cc")) flags.emplace(name, flag);
  }
  return flags;
}

std::string HelpPage(const FlagsByName& flags) {
  return absl::StrCat(
      "opmill-server serves DirectML's operators over gRPC.\n\n"
      "  opmill-server [--address=127.0.0.1:50051] [--device=auto] ...\n\n"
      "Every flag can also be set in the environment (--log_format as OPMILL_LOG_FORMAT) or in a\n"
      "file (--flagfile=FILE). Sizes are written as 64MiB, 1.5GiB, 500MB or plain bytes, times as\n"
      "500ms or 2m.\n\n",
      FlagTable(flags));
}

absl::Status ReadRepository(RepositoryOptions& repository) {
  repository.folder = absl::GetFlag(FLAGS_model_repository);
  repository.load = absl::GetFlag(FLAGS_load_model);
  RETURN_IF_ERROR(ReadWord("model_control_mode", absl::GetFlag(FLAGS_model_control_mode),
                           {{"none", ModelControl::kNone},
                            {"poll", ModelControl::kPoll},
                            {"explicit", ModelControl::kExplicit}},
                           repository.control));
  if (repository.control == ModelControl::kExplicit && repository.folder.empty()) {
    return absl::InvalidArgumentError(
        "--model_control_mode is \"explicit\", which needs --model_repository.");
  }
  if (repository.load.empty() || repository.control == ModelControl::kExplicit) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("--load_model is \"",
                                                 absl::StrJoin(repository.load, ","),
                                                 "\", which needs --model_control_mode=explicit."));
}

absl::Status ReadTraces(TraceOptions& traces) {
  const std::string endpoint = absl::GetFlag(FLAGS_trace_endpoint);
  absl::string_view address = endpoint;
  const bool uses_tls = absl::ConsumePrefix(&address, "https://");
  if (!uses_tls) absl::ConsumePrefix(&address, "http://");
  traces = {.endpoint = std::string(address),
            .uses_tls = uses_tls,
            .ca_file = absl::GetFlag(FLAGS_trace_ca),
            .sample = absl::GetFlag(FLAGS_trace_sample)};
  const bool is_address = PortOf(address).value_or(0) != 0 && !absl::StrContains(address, '/');
  if (!endpoint.empty() && !is_address) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace_endpoint is \"", endpoint,
                     "\"; it must be host:port or https://host:port, such as 127.0.0.1:4317."));
  }
  if (!traces.ca_file.empty() && !uses_tls) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace_ca is \"", traces.ca_file,
                     "\", which needs a --trace_endpoint that starts with https://."));
  }
  if (traces.sample >= 0 && traces.sample <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--trace_sample is ", traces.sample, "; it must be at least 0 and at most 1."));
}

absl::Status ReadLimits(Limits& limits) {
  limits = {.memory_limit = absl::GetFlag(FLAGS_memory_limit).bytes,
            .max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes).bytes,
            .max_response_chunk_bytes = absl::GetFlag(FLAGS_max_response_chunk_bytes).bytes,
            .max_tensor_bytes = absl::GetFlag(FLAGS_max_tensor_bytes).bytes,
            .max_bytes_in_flight = absl::GetFlag(FLAGS_max_bytes_in_flight).bytes,
            .max_scratch_bytes = absl::GetFlag(FLAGS_max_scratch_bytes).bytes,
            .max_executions = absl::GetFlag(FLAGS_max_executions),
            .max_queued = absl::GetFlag(FLAGS_max_queued),
            .max_executions_per_stream = absl::GetFlag(FLAGS_max_executions_per_stream),
            .max_streams = absl::GetFlag(FLAGS_max_streams),
            .caller = absl::GetFlag(FLAGS_caller_limits),
            .max_connections = absl::GetFlag(FLAGS_max_connections),
            .max_connections_per_address = absl::GetFlag(FLAGS_max_connections_per_address),
            .max_calls_per_connection = absl::GetFlag(FLAGS_max_calls_per_connection),
            .operator_cache_capacity = absl::GetFlag(FLAGS_operator_cache_capacity),
            .max_shared_memory_regions = absl::GetFlag(FLAGS_max_shared_memory_regions),
            .max_model_bytes = absl::GetFlag(FLAGS_max_model_bytes).bytes,
            .max_model_constant_bytes = absl::GetFlag(FLAGS_max_model_constant_bytes).bytes,
            .max_model_compile_time = absl::GetFlag(FLAGS_max_model_compile_time),
            .max_total_model_bytes = absl::GetFlag(FLAGS_max_total_model_bytes).bytes,
            .max_inline_model_bytes = absl::GetFlag(FLAGS_max_inline_model_bytes).bytes,
            .max_inline_models = absl::GetFlag(FLAGS_max_inline_models),
            .max_resident_tensor_bytes = absl::GetFlag(FLAGS_max_resident_tensor_bytes).bytes,
            .max_resident_tensor_bytes_per_owner =
                absl::GetFlag(FLAGS_max_resident_tensor_bytes_per_owner).bytes,
            .max_idle_bytes = absl::GetFlag(FLAGS_max_idle_bytes).bytes,
            .stall_timeout = absl::GetFlag(FLAGS_stall_timeout)};
  // An int in gRPC.
  constexpr uint64_t kMostMessageBytes = uint64_t{2047} << 20;
  constexpr uint64_t kMostBytes = std::numeric_limits<uint64_t>::max();
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  RETURN_IF_ERROR(
      CheckBytes("max_message_bytes", limits.max_message_bytes, 4096, kMostMessageBytes));
  RETURN_IF_ERROR(CheckBytes("max_response_chunk_bytes", limits.max_response_chunk_bytes, 4096,
                             kMostMessageBytes));
  RETURN_IF_ERROR(CheckBytes("max_tensor_bytes", limits.max_tensor_bytes, 4, kMostBytes));
  RETURN_IF_ERROR(CheckCount("max_executions", limits.max_executions, kMost));
  RETURN_IF_ERROR(CheckCount("max_executions_per_stream", limits.max_executions_per_stream, kMost));
  RETURN_IF_ERROR(CheckCount("max_queued", limits.max_queued, kMost));
  RETURN_IF_ERROR(CheckCount("max_streams", limits.max_streams, kMost));
  RETURN_IF_ERROR(CheckCount("max_shared_memory_regions", limits.max_shared_memory_regions, kMost));
  // A setting of HTTP/2; an int in gRPC.
  RETURN_IF_ERROR(CheckCount("max_calls_per_connection", limits.max_calls_per_connection,
                             std::numeric_limits<int32_t>::max()));
  if (limits.stall_timeout < absl::Milliseconds(100)) {
    return absl::InvalidArgumentError(absl::StrCat("--stall_timeout is ",
                                                   absl::FormatDuration(limits.stall_timeout),
                                                   "; it must be at least 100ms."));
  }
  if (limits.max_model_compile_time < absl::Milliseconds(100)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_model_compile_time is ", absl::FormatDuration(limits.max_model_compile_time),
        "; it must be at least 100ms."));
  }
  const OptionalParts parts = {.repository = !absl::GetFlag(FLAGS_model_repository).empty(),
                               .http = !absl::GetFlag(FLAGS_http_address).empty()};
  return DivideMemory(HostMemoryBytes(), parts, limits).status();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> arguments) {
  const FlagsByName flags = OurFlags();
  CommandLine line;
  const PageRequest page = FindPageRequest(arguments);
  if (page == PageRequest::kHelpPage) line.page = HelpPage(flags);
  if (page == PageRequest::kVersionPage) line.page = absl::StrCat("opmill-server ", kVersion, "\n");
  if (!line.page.empty()) return line;
  RETURN_IF_ERROR(SetFromEnvironment(flags));
  ASSIGN_OR_RETURN(arguments, WithFlagFiles(arguments));
  RETURN_IF_ERROR(SetFromArguments(flags, arguments));
  line.unknown_variables = UnknownVariables(flags);
  line.log_file = absl::GetFlag(FLAGS_log_file);
  RETURN_IF_ERROR(ReadWord("service", absl::GetFlag(FLAGS_service),
                           {{"none", ServiceAction::kNone},
                            {"install", ServiceAction::kInstall},
                            {"uninstall", ServiceAction::kUninstall},
                            {"run", ServiceAction::kRun}},
                           line.service));
  line.list_adapters = absl::GetFlag(FLAGS_list_adapters);
  RETURN_IF_ERROR(ReadWord("log_format", absl::GetFlag(FLAGS_log_format),
                           {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                           line.log_format));
  RETURN_IF_ERROR(ReadWord("log_level", absl::GetFlag(FLAGS_log_level),
                           {{"debug", LogLevel::kDebug},
                            {"info", LogLevel::kInfo},
                            {"warning", LogLevel::kWarning},
                            {"error", LogLevel::kError}},
                           line.log_level));
  RETURN_IF_ERROR(ReadWord("device", absl::GetFlag(FLAGS_device),
                           {{"auto", DeviceChoice::kAuto},
                            {"hardware", DeviceChoice::kHardware},
                            {"software", DeviceChoice::kSoftware},
                            {"cpu", DeviceChoice::kCpu},
                            {"reference", DeviceChoice::kReference}},
                           line.server.device.choice));
  RETURN_IF_ERROR(ReadWord(
      "standby", absl::GetFlag(FLAGS_standby),
      {{"auto", StandbyChoice::kAuto}, {"on", StandbyChoice::kOn}, {"off", StandbyChoice::kOff}},
      line.server.device.standby));
  RETURN_IF_ERROR(
      ReadWord("small_work", absl::GetFlag(FLAGS_small_work),
               {{"auto", SmallWork::kAuto}, {"gpu", SmallWork::kGpu}, {"cpu", SmallWork::kCpu}},
               line.server.device.small_work));
  RETURN_IF_ERROR(ReadWord("shared_memory", absl::GetFlag(FLAGS_shared_memory),
                           {{"auto", SharedMemoryChoice::kAuto},
                            {"on", SharedMemoryChoice::kOn},
                            {"off", SharedMemoryChoice::kOff}},
                           line.server.shared_memory));
  line.server.addresses = absl::GetFlag(FLAGS_address);
  if (line.server.addresses.empty()) {
    return absl::InvalidArgumentError("--address is empty; it must name at least one host:port.");
  }
  for (const std::string& address : line.server.addresses) {
    RETURN_IF_ERROR(CheckAddress(address));
  }
  line.server.access = {.tls_cert = absl::GetFlag(FLAGS_tls_cert),
                        .tls_key = absl::GetFlag(FLAGS_tls_key),
                        .tls_client_ca = absl::GetFlag(FLAGS_tls_client_ca),
                        .token_file = absl::GetFlag(FLAGS_token_file)};
  line.server.http_address = absl::GetFlag(FLAGS_http_address);
  line.server.metrics_address = absl::GetFlag(FLAGS_metrics_address);
  RETURN_IF_ERROR(ReadTraces(line.server.traces));
  RETURN_IF_ERROR(ReadRepository(line.server.repository));
  line.server.tensor_folder = absl::GetFlag(FLAGS_tensors);
  line.server.tensor_copies = absl::GetFlag(FLAGS_tensor_copies);
  line.server.insecure = absl::GetFlag(FLAGS_insecure);
  RETURN_IF_ERROR(CheckExposure(line.server));
  line.server.device.adapter = absl::GetFlag(FLAGS_adapter);
  const std::string shader_cache = absl::GetFlag(FLAGS_shader_cache);
  line.server.device.shader_cache_directory =
      shader_cache == "default" ? DefaultCacheDirectory() : shader_cache;
  line.server.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  if (line.server.drain_timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("--drain_timeout is ",
                                                   absl::FormatDuration(line.server.drain_timeout),
                                                   "; it must be at least 0."));
  }
  RETURN_IF_ERROR(ReadLimits(line.server.limits));
  return line;
}

}  // namespace opmill
