// A connection to an OpMill server.
#ifndef OPMILL_CLIENT_CLIENT_H_
#define OPMILL_CLIENT_CLIENT_H_

#include <cstddef>
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

// PEM texts. Without `authorities`, the system's; certificate and key where the server asks for
// them.
struct TlsOptions {
  std::string authorities;
  std::string certificate;
  std::string key;
  std::string server_name;  // that the server's certificate must have; empty: the target's host
};

struct ClientOptions {
  std::optional<TlsOptions> tls;  // none: clear text
  std::string token;              // bearer token of every call; empty: none
  // Sends the token in clear text to other machines, too.
  bool insecure = false;
  absl::Duration connect_timeout = absl::Seconds(10);
  // Of every call that has no timeout of its own.
  absl::Duration timeout = absl::InfiniteDuration();
  // How often Execute may try an execution that ends Unavailable: on the next server, or when this
  // one is back.
  int max_attempts = 5;
  // Of one message from the server: more than its longest chunk.
  size_t max_received_message_bytes = size_t{64} << 20;
};

struct ExecutionResult {
  std::vector<OutputTensor> outputs;
  v1::ExecutionStatistics statistics;
};

// Failures are absl::Status with the server's sentence; client/error.h reads the rest of them. Any
// thread may call. Example:
//
//   absl::StatusOr<Client> client = Client::Connect("127.0.0.1:50051");
//   absl::StatusOr<ExecutionResult> result = client->Execute(desc, bytes);
//
// A program that connects and disconnects keeps gRPC up in between with grpc_init(): its shutdown
// with its last object may take 10 s.
class Client {
 public:
  // `target` as gRPC takes it: host:port, unix:path, ... Several servers, as literal addresses with
  // commas between them or as dns:///name:port, take calls in turn while they say that they serve.
  // Unavailable where nobody answers there within `connect_timeout`, or refuses; FailedPrecondition
  // where a token would go to another machine in clear text.
  static absl::StatusOr<Client> Connect(const std::string& target,
                                        const ClientOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();
  absl::StatusOr<v1::GetStatisticsResponse> GetStatistics();
  absl::StatusOr<v1::CompileOperatorResponse> Compile(
      const v1::OperatorDesc& desc, std::optional<v1::FeatureLevel> feature_level = std::nullopt);
  // grpc.health.v1: "SERVING" or "NOT_SERVING". NotFound where the server knows no such service.
  absl::StatusOr<std::string> CheckHealth(absl::string_view service = "");

  // Sends the inputs, in the operator's order, in one message if they are small together, else in
  // chunks. These two return when gRPC no longer reads the bytes.
  absl::StatusOr<ExecutionResult> Execute(const v1::OperatorDesc& desc,
                                          absl::Span<const absl::Span<const std::byte>> inputs,
                                          const ExecutionOptions& options = {});
  absl::StatusOr<ExecutionResult> Execute(const v1::OperatorDesc& desc,
                                          absl::Span<const std::byte> input,
                                          const ExecutionOptions& options = {}) {
    return Execute(desc, absl::MakeConstSpan(&input, 1), options);
  }
  absl::StatusOr<v1::ExecutionStatistics> Execute(const v1::OperatorDesc& desc,
                                                  absl::Span<const InputBytes> inputs,
                                                  OutputSink& sink,
                                                  const ExecutionOptions& options = {});
  absl::StatusOr<v1::ExecutionStatistics> Execute(const v1::OperatorDesc& desc,
                                                  const InputBytes& input, OutputSink& sink,
                                                  const ExecutionOptions& options = {}) {
    return Execute(desc, absl::MakeConstSpan(&input, 1), sink, options);
  }
  // The same by the unary-request RPC whatever the size; the server refuses more than its
  // max_message_bytes.
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(const v1::OperatorDesc& desc,
                                                              absl::Span<const InputBytes> inputs,
                                                              OutputSink& sink,
                                                              const ExecutionOptions& options = {});
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(
      const v1::OperatorDesc& desc, const InputBytes& input, OutputSink& sink,
      const ExecutionOptions& options = {}) {
    return ExecuteInOneMessage(desc, absl::MakeConstSpan(&input, 1), sink, options);
  }
  // For many executions at a time. Ends before the client does.
  absl::StatusOr<std::unique_ptr<ExecutionStream>> OpenStream(
      absl::Duration timeout = absl::InfiniteDuration());

 private:
  struct Connection;
  explicit Client(std::unique_ptr<Connection> connection);

  // What a message to the server may take, asked once.
  absl::StatusOr<size_t> MaxMessageBytes(absl::Duration timeout);
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInChunks(const v1::OperatorDesc& desc,
                                                          absl::Span<const InputBytes> inputs,
                                                          OutputSink& sink,
                                                          const ExecutionOptions& options);

  std::unique_ptr<Connection> connection_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLIENT_H_
