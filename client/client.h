// A connection to an OpMill server.
#ifndef OPMILL_CLIENT_CLIENT_H_
#define OPMILL_CLIENT_CLIENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/execution.h"
#include "client/execution_stream.h"
#include "opmill/v1/operator.pb.h"
#include "opmill/v1/service.pb.h"

namespace opmill {

// PEM texts. Empty `authorities` mean the system's. Certificate and key are for servers that
// require client certificates.
struct TlsOptions {
  std::string authorities;
  std::string certificate;
  std::string key;
  std::string server_name;  // expected in the server's certificate; empty: the target's host
};

struct ClientOptions {
  std::optional<TlsOptions> tls;  // none: clear text
  std::string token;              // bearer token of every call; empty: none
  // Called for each call except CheckHealth, by the thread that makes it. Returns the traceparent
  // of the active span (W3C Trace Context), for servers that trace calls; empty if there is none.
  // None: no call has one.
  std::function<std::string()> traceparent;
  // Allows sending the token to other machines in clear text.
  bool insecure = false;
  absl::Duration connect_timeout = absl::Seconds(10);
  // For every call that has no timeout of its own.
  absl::Duration timeout = absl::InfiniteDuration();
  // How often Execute may try an execution that ends Unavailable.
  int max_attempts = 5;
  // The longest message to accept; must exceed the server's max_response_chunk_bytes.
  size_t max_received_message_bytes = size_t{64} << 20;
};

struct ExecutionResult {
  std::vector<OutputTensor> outputs;
  v1::ExecutionStatistics statistics;
};

// Thread-safe. Errors are absl::Status with the server's message; client/error.h reads their
// details. Example:
//
//   absl::StatusOr<Client> client = Client::Connect("127.0.0.1:50051");
//   absl::StatusOr<ExecutionResult> result = client->Execute(desc, bytes);
//
// A program that connects and disconnects should call grpc_init() once: when the last object of
// gRPC is destroyed, gRPC shuts down, which may take 10 s.
class Client {
 public:
  // `target` is a target of gRPC: host:port, unix:path, ... With several servers, given as literal
  // addresses separated by commas or as dns:///name:port, calls alternate between those that report
  // SERVING. Returns Unavailable if no server accepts the connection within `connect_timeout`, and
  // FailedPrecondition if the token would be sent to another machine in clear text.
  static absl::StatusOr<Client> Connect(const std::string& target,
                                        const ClientOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();
  absl::StatusOr<v1::GetStatisticsResponse> GetStatistics();
  absl::StatusOr<v1::CompileOperatorResponse> Compile(
      const Computation& computation, std::optional<v1::FeatureLevel> feature_level = std::nullopt);
  // grpc.health.v1: "SERVING" or "NOT_SERVING". NotFound if the server does not know the service.
  absl::StatusOr<std::string> CheckHealth(absl::string_view service = "");

  // The models of the server's repository, or the one with this name: NotFound if there is none.
  absl::StatusOr<v1::ListModelsResponse> ListModels(const std::string& name = "");

  // The tensors that stay on the server, or the one with this name: NotFound if there is none.
  // Executions put and read them (ExecutionOptions). Of several servers, listed by address, all are
  // asked, and executions that name tensors go to the server that has them; on an ExecutionStream
  // they do not.
  absl::StatusOr<v1::ListTensorsResponse> ListTensors(const std::string& name = "");
  absl::Status DeleteTensor(const std::string& name,
                            std::optional<uint64_t> if_generation = std::nullopt);

  // What the model of an ONNX file takes and gives, which the server then has for a while: later
  // calls name it by SHA-256 (ModelDesc::sha256). Sends the file only if the server does not have
  // it.
  absl::StatusOr<v1::ModelInfo> DescribeModel(absl::string_view sha256, absl::string_view file);

  // What becomes of the nodes of a model, which the server must have.
  absl::StatusOr<v1::ExplainModelResponse> ExplainModel(const v1::ExplainModelRequest& request);

  // Sends the inputs, in the order of the operator or of the model's message, in one message if
  // they are small, else in chunks. The overloads without a sink return after gRPC has finished
  // reading the inputs.
  absl::StatusOr<ExecutionResult> Execute(const Computation& computation,
                                          absl::Span<const absl::Span<const std::byte>> inputs,
                                          const ExecutionOptions& options = {});
  absl::StatusOr<ExecutionResult> Execute(const Computation& computation,
                                          absl::Span<const std::byte> input,
                                          const ExecutionOptions& options = {}) {
    return Execute(computation, absl::MakeConstSpan(&input, 1), options);
  }
  absl::StatusOr<v1::ExecutionStatistics> Execute(const Computation& computation,
                                                  absl::Span<const InputBytes> inputs,
                                                  OutputSink& sink,
                                                  const ExecutionOptions& options = {});
  absl::StatusOr<v1::ExecutionStatistics> Execute(const Computation& computation,
                                                  const InputBytes& input, OutputSink& sink,
                                                  const ExecutionOptions& options = {}) {
    return Execute(computation, absl::MakeConstSpan(&input, 1), sink, options);
  }
  // Always sends one message, which the server refuses if it exceeds max_message_bytes.
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(const Computation& computation,
                                                              absl::Span<const InputBytes> inputs,
                                                              OutputSink& sink,
                                                              const ExecutionOptions& options = {});
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(
      const Computation& computation, const InputBytes& input, OutputSink& sink,
      const ExecutionOptions& options = {}) {
    return ExecuteInOneMessage(computation, absl::MakeConstSpan(&input, 1), sink, options);
  }
  // For a server on this machine that accepts it (GetServerInfoResponse.shared_memory). The client
  // copies nothing, except that the sink receives the outputs that are not in shared memory.
  // Returns InvalidArgument with a field such as "shared_inputs[0].key" if the server cannot use a
  // range. Makes one attempt if an output overlaps an input, which a failed attempt may have
  // overwritten.
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInSharedMemory(
      const Computation& computation, const SharedTensors& tensors, OutputSink& sink,
      const ExecutionOptions& options = {});
  // For many concurrent executions. Must be destroyed before the client.
  absl::StatusOr<std::unique_ptr<ExecutionStream>> OpenStream(
      absl::Duration timeout = absl::InfiniteDuration());

 private:
  struct Connection;
  explicit Client(std::unique_ptr<Connection> connection);

  // The server's max_message_bytes, requested once.
  absl::StatusOr<size_t> MaxMessageBytes(absl::Duration timeout);
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInChunks(const Computation& computation,
                                                          absl::Span<const InputBytes> inputs,
                                                          OutputSink& sink,
                                                          const ExecutionOptions& options);

  std::unique_ptr<Connection> connection_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLIENT_H_
