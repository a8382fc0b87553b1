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

// All texts are PEM. If `authorities` is empty, the system's are used. Certificate and key are
// needed only if the server requires them.
struct TlsOptions {
  std::string authorities;
  std::string certificate;
  std::string key;
  std::string server_name;  // expected in the certificate; empty: the target's host
};

struct ClientOptions {
  std::optional<TlsOptions> tls;  // none: clear text
  std::string token;              // bearer token of every call; empty: none
  // Allows sending the token in clear text to other machines.
  bool insecure = false;
  absl::Duration connect_timeout = absl::Seconds(10);
  // The timeout of calls without their own timeout.
  absl::Duration timeout = absl::InfiniteDuration();
  // The most attempts of Execute for an execution that ends with Unavailable: on the next server,
  // or when this one is back.
  int max_attempts = 5;
  // The largest message from the server; must be larger than its longest chunk.
  size_t max_received_message_bytes = size_t{64} << 20;
};

struct ExecutionResult {
  std::vector<OutputTensor> outputs;
  v1::ExecutionStatistics statistics;
};

// Errors are absl::Status with the server's sentence; client/error.h reads the details.
// Thread-safe. Example:
//
//   absl::StatusOr<Client> client = Client::Connect("127.0.0.1:50051");
//   absl::StatusOr<ExecutionResult> result = client->Execute(desc, bytes);
//
// A program that connects and disconnects repeatedly should keep gRPC initialized with grpc_init():
// gRPC's shutdown with its last object may take 10 s.
class Client {
 public:
  // `target` has gRPC's form: host:port, unix:path, ... Several servers (literal addresses
  // separated by commas, or dns:///name:port) are called round-robin while they report that they
  // serve. Returns Unavailable if no server accepts a connection within `connect_timeout`, and
  // FailedPrecondition if a token would be sent to another machine in clear text.
  static absl::StatusOr<Client> Connect(const std::string& target,
                                        const ClientOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();
  absl::StatusOr<v1::GetStatisticsResponse> GetStatistics();
  absl::StatusOr<v1::CompileOperatorResponse> Compile(
      const v1::OperatorDesc& desc, std::optional<v1::FeatureLevel> feature_level = std::nullopt);
  // grpc.health.v1: "SERVING" or "NOT_SERVING". Returns NotFound if the server does not know the
  // service.
  absl::StatusOr<std::string> CheckHealth(absl::string_view service = "");

  // Sends the inputs, in the operator's order, in one message if they are small, otherwise in
  // chunks. The overloads without InputBytes return when gRPC no longer reads the bytes.
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
  // The same through the RPC Execute, whatever the size. The server refuses messages of more than
  // its max_message_bytes.
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(const v1::OperatorDesc& desc,
                                                              absl::Span<const InputBytes> inputs,
                                                              OutputSink& sink,
                                                              const ExecutionOptions& options = {});
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInOneMessage(
      const v1::OperatorDesc& desc, const InputBytes& input, OutputSink& sink,
      const ExecutionOptions& options = {}) {
    return ExecuteInOneMessage(desc, absl::MakeConstSpan(&input, 1), sink, options);
  }
  // For many concurrent executions. Must be destroyed before the client.
  absl::StatusOr<std::unique_ptr<ExecutionStream>> OpenStream(
      absl::Duration timeout = absl::InfiniteDuration());

 private:
  struct Connection;
  explicit Client(std::unique_ptr<Connection> connection);

  // The server's max_message_bytes, queried once.
  absl::StatusOr<size_t> MaxMessageBytes(absl::Duration timeout);
  absl::StatusOr<v1::ExecutionStatistics> ExecuteInChunks(const v1::OperatorDesc& desc,
                                                          absl::Span<const InputBytes> inputs,
                                                          OutputSink& sink,
                                                          const ExecutionOptions& options);

  std::unique_ptr<Connection> connection_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLIENT_H_
