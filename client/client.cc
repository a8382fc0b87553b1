#include "client/client.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/channel.h"
#include "client/connect_failure.h"
#include "client/error.h"
#include "client/execute_in_one_message.h"
#include "client/grpc_conversions.h"
#include "client/health.h"
#include "client/retry.h"
#include "client/tensor_servers.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/errors.h"
#include "opmill/v1/service.grpc.pb.h"

namespace opmill {
namespace {

// Above this size, the memory of a single message costs more than the time of chunks.
constexpr size_t kMaxInlineBytes = size_t{1} << 20;
constexpr size_t kChunkBytes = size_t{1} << 20;
// The part of a message that is not tensor bytes.
constexpr size_t kHeaderBytes = 4096;
// The server's own timeout has the better message, so it gets the time to send it.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(500);

bool Overlap(const v1::SharedMemoryRange& a, const v1::SharedMemoryRange& b) {
  return absl::StripPrefix(a.key(), "/") == absl::StripPrefix(b.key(), "/") &&
         a.offset() < b.offset() + b.byte_size() && b.offset() < a.offset() + a.byte_size();
}

bool OverwritesInputs(const SharedTensors& tensors) {
  for (const v1::SharedMemoryRange& output : tensors.outputs) {
    for (const v1::SharedMemoryRange& input : tensors.inputs) {
      if (Overlap(output, input)) return true;
    }
  }
  return false;
}

// Signals when gRPC has released all references to the caller's memory.
class BorrowedInput {
 public:
  std::vector<InputBytes> Lend(absl::Span<const absl::Span<const std::byte>> inputs) {
    is_out_ = true;
    const std::shared_ptr<const void> owner(this, [this](const void*) {
      std::lock_guard<std::mutex> lock(mutex_);
      is_out_ = false;
      returned_.notify_all();
    });
    std::vector<InputBytes> lent;
    for (const absl::Span<const std::byte> input : inputs) {
      lent.push_back({input.data(), input.size(), owner});
    }
    return lent;
  }
  void AwaitReturn() {
    std::unique_lock<std::mutex> lock(mutex_);
    returned_.wait(lock, [&] { return !is_out_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  bool is_out_ = false;
};

// Those that the server does not have.
std::vector<InputBytes> SentOf(absl::Span<const InputBytes> inputs,
                               const ExecutionOptions& options) {
  std::vector<InputBytes> sent;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_resident = absl::c_any_of(options.resident_inputs,
                                            [i](const auto& each) { return each.input() == i; });
    if (!is_resident) sent.push_back(inputs[i]);
  }
  return sent;
}

bool NamesTensors(const ExecutionOptions& options) {
  return !options.resident_inputs.empty() || !options.resident_outputs.empty();
}

}  // namespace

struct Client::Connection {
  Connection(const std::string& target, std::shared_ptr<grpc::Channel> to,
             const ClientOptions& client_options)
      : channel(std::move(to)),
        stub(v1::OperatorService::NewStub(channel)),
        generic(channel),
        options(client_options) {
    std::vector<std::string> addresses;
    for (const absl::string_view address : absl::StrSplit(target, ',')) {
      if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
        addresses.emplace_back(address);
      }
    }
    if (addresses.size() > 1) {
      servers = std::make_unique<TensorServers>(std::move(addresses), options);
    }
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::OperatorService::Stub::*method)(
                                    grpc::ClientContext*, const Request&, Response*),
                                const Request& request,
                                absl::Duration timeout = absl::InfiniteDuration()) {
    grpc::ClientContext context;
    Prepare(context, std::min(timeout, options.timeout), options.token, Traceparent());
    Response response;
    const grpc::Status status = ((*stub).*method)(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  std::string Traceparent() const { return options.traceparent ? options.traceparent() : ""; }

  absl::Duration TimeoutOf(const ExecutionOptions& execution) const {
    return std::min(execution.timeout, options.timeout);
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::OperatorService::Stub> stub;
  grpc::GenericStub generic;
  ClientOptions options;
  std::unique_ptr<TensorServers> servers;  // null if the target is one address
  std::mutex mutex;
  size_t max_message_bytes = 0;  // 0: not yet requested
};

Client::Client(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

absl::StatusOr<Client> Client::Connect(const std::string& target, const ClientOptions& options) {
  if (!options.token.empty() && !options.tls && !options.insecure && !StaysOnThisMachine(target)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "The token would be sent to ", target,
        " in clear text; use TLS, or allow it (insecure) if everybody on the way may read it."));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> made, MakeChannel(target, options));
  Client client(std::make_unique<Connection>(target, std::move(made), options));
  grpc::Channel& channel = *client.connection_->channel;
  const auto deadline = GrpcDeadline(options.connect_timeout);
  for (grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
       state != GRPC_CHANNEL_READY; state = channel.GetState(/*try_to_connect=*/true)) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      // A call that fails at once returns the reason, after a long prefix.
      const absl::Status failure = client.CheckHealth().status();
      const std::vector<std::string> parts = absl::StrSplit(failure.message(), "last error: ");
      return absl::UnavailableError(ConnectFailure(target, options.tls.has_value(), parts.back()));
    }
    if (!channel.WaitForStateChange(state, deadline)) {
      return absl::UnavailableError(absl::StrCat("No server answered at ", target, " within ",
                                                 absl::FormatDuration(options.connect_timeout),
                                                 "."));
    }
  }
  return client;
}

absl::StatusOr<v1::GetServerInfoResponse> Client::GetServerInfo() {
  return connection_->Call(&v1::OperatorService::Stub::GetServerInfo, v1::GetServerInfoRequest());
}

absl::StatusOr<v1::GetStatisticsResponse> Client::GetStatistics() {
  return connection_->Call(&v1::OperatorService::Stub::GetStatistics, v1::GetStatisticsRequest());
}

absl::StatusOr<v1::ListTensorsResponse> Client::ListTensors(const std::string& name) {
  if (connection_->servers != nullptr) return connection_->servers->List(name);
  v1::ListTensorsRequest request;
  request.set_name(name);
  return connection_->Call(&v1::OperatorService::Stub::ListTensors, request);
}

absl::Status Client::DeleteTensor(const std::string& name, std::optional<uint64_t> if_generation) {
  if (connection_->servers != nullptr) return connection_->servers->Delete(name, if_generation);
  v1::DeleteTensorRequest request;
  request.set_name(name);
  if (if_generation) request.set_if_generation(*if_generation);
  return connection_->Call(&v1::OperatorService::Stub::DeleteTensor, request).status();
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels(const std::string& name) {
  v1::ListModelsRequest request;
  request.set_name(name);
  return connection_->Call(&v1::OperatorService::Stub::ListModels, request);
}

absl::StatusOr<v1::ModelInfo> Client::DescribeModel(absl::string_view sha256,
                                                    absl::string_view file) {
  v1::DescribeModelRequest request;
  request.mutable_model()->set_sha256(std::string(sha256));
  auto described = connection_->Call(&v1::OperatorService::Stub::DescribeModel, request);
  if (ReasonOf(described.status()) == "MODEL_FILE_NEEDED") {
    ASSIGN_OR_RETURN(const size_t most, MaxMessageBytes(connection_->options.timeout));
    if (file.size() > most - kHeaderBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "The file has ", file.size(), " bytes; messages to the server may have ", most,
          " (max_message_bytes). Put it into the server's model repository, or raise that limit."));
    }
    request.set_model_file(std::string(file));
    described = connection_->Call(&v1::OperatorService::Stub::DescribeModel, request);
  }
  if (!described.ok()) return described.status();
  return std::move(*described->mutable_model());
}

absl::StatusOr<v1::ExplainModelResponse> Client::ExplainModel(
    const v1::ExplainModelRequest& request) {
  return connection_->Call(&v1::OperatorService::Stub::ExplainModel, request);
}

absl::StatusOr<v1::CompileOperatorResponse> Client::Compile(
    const Computation& computation, std::optional<v1::FeatureLevel> feature_level) {
  v1::CompileOperatorRequest request;
  SetComputation(computation, request);
  if (feature_level) request.set_feature_level(*feature_level);
  return connection_->Call(&v1::OperatorService::Stub::CompileOperator, request);
}

absl::StatusOr<std::string> Client::CheckHealth(absl::string_view service) {
  return opmill::CheckHealth(connection_->generic, service, connection_->options.timeout,
                             connection_->options.token);
}

absl::StatusOr<size_t> Client::MaxMessageBytes(absl::Duration timeout) {
  std::lock_guard<std::mutex> lock(connection_->mutex);
  if (connection_->max_message_bytes == 0) {
    ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info,
                     connection_->Call(&v1::OperatorService::Stub::GetServerInfo,
                                       v1::GetServerInfoRequest(), timeout));
    const uint64_t limit = info.limits().max_message_bytes();
    if (limit <= kHeaderBytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          "The server accepts messages of ", limit, " bytes; one chunk needs ", kHeaderBytes, "."));
    }
    connection_->max_message_bytes = static_cast<size_t>(limit);
  }
  return connection_->max_message_bytes;
}

absl::StatusOr<ExecutionResult> Client::Execute(
    const Computation& computation, absl::Span<const absl::Span<const std::byte>> inputs,
    const ExecutionOptions& options) {
  BorrowedInput borrowed;
  MemorySink sink;
  absl::StatusOr<v1::ExecutionStatistics> statistics =
      Execute(computation, borrowed.Lend(inputs), sink, options);
  borrowed.AwaitReturn();
  if (!statistics.ok()) return statistics.status();
  return ExecutionResult{std::move(sink.outputs()), *std::move(statistics)};
}

absl::StatusOr<v1::ExecutionStatistics> Client::Execute(const Computation& computation,
                                                        absl::Span<const InputBytes> inputs,
                                                        OutputSink& sink,
                                                        const ExecutionOptions& options) {
  if (connection_->servers != nullptr && NamesTensors(options)) {
    return connection_->servers->Execute(options, [&](Client& client) {
      return client.Execute(computation, inputs, sink, options);
    });
  }
  ASSIGN_OR_RETURN(const size_t max_message_bytes, MaxMessageBytes(options.timeout));
  const bool is_small =
      TotalBytes(inputs) <= std::min(kMaxInlineBytes, max_message_bytes - kHeaderBytes);
  // Rows that an attempt has appended before its answer was lost would be appended again.
  const bool appends = absl::c_any_of(options.resident_outputs, [](const auto& output) {
    return output.kind() == v1::ResidentOutput::KIND_APPEND;
  });
  return Retry(
      appends ? 1 : connection_->options.max_attempts, connection_->TimeoutOf(options),
      [&](absl::Duration time) { SleepUntilConnected(*connection_->channel, time); },
      [&](absl::Duration remaining) {
        ExecutionOptions bounded = options;
        bounded.timeout = remaining;
        return is_small ? ExecuteInOneMessage(computation, inputs, sink, bounded)
                        : ExecuteInChunks(computation, inputs, sink, bounded);
      });
}

absl::StatusOr<v1::ExecutionStatistics> Client::ExecuteInOneMessage(
    const Computation& computation, absl::Span<const InputBytes> inputs, OutputSink& sink,
    const ExecutionOptions& options) {
  if (connection_->servers != nullptr && NamesTensors(options)) {
    return connection_->servers->Execute(options, [&](Client& client) {
      return client.ExecuteInOneMessage(computation, inputs, sink, options);
    });
  }
  v1::ExecuteRequest request;
  SetComputation(computation, request);
  SetOptions(options, request);
  return opmill::ExecuteInOneMessage(connection_->generic, request, SentOf(inputs, options), sink,
                                     connection_->TimeoutOf(options), connection_->options.token,
                                     connection_->Traceparent());
}

absl::StatusOr<v1::ExecutionStatistics> Client::ExecuteInSharedMemory(
    const Computation& computation, const SharedTensors& tensors, OutputSink& sink,
    const ExecutionOptions& options) {
  if (connection_->servers != nullptr && NamesTensors(options)) {
    return connection_->servers->Execute(options, [&](Client& client) {
      return client.ExecuteInSharedMemory(computation, tensors, sink, options);
    });
  }
  v1::ExecuteRequest request;
  SetComputation(computation, request);
  SetOptions(options, request);
  for (const v1::SharedMemoryRange& range : tensors.inputs) *request.add_shared_inputs() = range;
  for (const v1::SharedMemoryRange& range : tensors.outputs) *request.add_shared_outputs() = range;
  const int max_attempts = OverwritesInputs(tensors) ? 1 : connection_->options.max_attempts;
  return Retry(
      max_attempts, connection_->TimeoutOf(options),
      [&](absl::Duration time) { SleepUntilConnected(*connection_->channel, time); },
      [&](absl::Duration remaining) {
        return opmill::ExecuteInOneMessage(connection_->generic, request, {}, sink, remaining,
                                           connection_->options.token, connection_->Traceparent());
      });
}

absl::StatusOr<v1::ExecutionStatistics> Client::ExecuteInChunks(const Computation& computation,
                                                                absl::Span<const InputBytes> inputs,
                                                                OutputSink& sink,
                                                                const ExecutionOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ExecutionStream> stream,
                   OpenStream(options.timeout + kDeadlineSlack));
  absl::StatusOr<v1::ExecutionStatistics> result = absl::UnknownError("");
  stream->Begin(
      computation, std::vector<InputBytes>(inputs.begin(), inputs.end()), sink,
      [&](absl::StatusOr<v1::ExecutionStatistics> end) { result = std::move(end); }, options);
  const absl::Status status = stream->Finish();
  // A stream may fail after the execution has succeeded; the result is still valid.
  return result;
}

absl::StatusOr<std::unique_ptr<ExecutionStream>> Client::OpenStream(absl::Duration timeout) {
  ASSIGN_OR_RETURN(const size_t max_message_bytes, MaxMessageBytes(timeout));
  return std::make_unique<ExecutionStream>(
      connection_->generic,
      ExecutionStream::Options{
          .chunk_bytes = std::min(kChunkBytes, max_message_bytes - kHeaderBytes),
          .timeout = timeout,
          .token = connection_->options.token,
          .traceparent = connection_->Traceparent()});
}

}  // namespace opmill
