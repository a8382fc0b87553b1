// Listens at the addresses of the server.
#ifndef OPMILL_SERVER_NETWORK_LISTENER_H_
#define OPMILL_SERVER_NETWORK_LISTENER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "server/network/connections.h"

namespace opmill {

// On POSIX systems, where gRPC can take over an accepted connection, the listener accepts the
// connections, asks Connections which ones the server keeps, and passes those to gRPC. On other
// systems gRPC listens and holds to their maximal number itself, as its newer versions do.
class Listener {
 public:
  using MakeCredentials = std::function<std::shared_ptr<grpc::ServerCredentials>()>;

  // Listens, but does not accept connections yet. Calls `make_credentials` for each gRPC port.
  // Returns Unavailable if an address is not available. `connections` must outlive the listener.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(const std::vector<std::string>& addresses,
                                                          Connections& connections,
                                                          const MakeCredentials& make_credentials,
                                                          grpc::ServerBuilder& builder);
  // Open connections stay open. Must be destroyed before the server that `builder` has built.
  virtual ~Listener() = default;

  // Starts to accept connections; to be called after the server is built. Errors are those of
  // Create.
  virtual absl::Status Start() = 0;

  // The requested addresses, with a port of 0 replaced by the selected one. Valid after Start.
  virtual const std::vector<std::string>& addresses() const = 0;
};

// Returns an Unavailable error that names the addresses.
absl::Status CannotListen(const std::vector<std::string>& addresses);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_LISTENER_H_
