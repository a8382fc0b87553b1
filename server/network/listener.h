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
#include "server/config/options.h"
#include "server/network/connections.h"

namespace opmill {

// On POSIX systems, where gRPC can take over an accepted connection, the listener accepts the
// connections, asks Connections which ones the server keeps, and passes those to gRPC. On other
// systems gRPC listens and limits the number of connections itself, as its newer versions do.
class Listener {
 public:
  using MakeCredentials = std::function<std::shared_ptr<grpc::ServerCredentials>()>;

  // Listens, and takes no connection yet. `make_credentials` is called for each port of gRPC's.
  // Unavailable where an address cannot be had.
  // `connections` outlives the listener.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(const std::vector<std::string>& addresses,
                                                          const Limits& limits,
                                                          Connections& connections,
                                                          const MakeCredentials& make_credentials,
                                                          grpc::ServerBuilder& builder);
  // Connections go on without it. It ends before the server that the builder has built.
  virtual ~Listener() = default;

  // Once the server is built. Unavailable as Create.
  virtual absl::Status Start() = 0;

  // The addresses asked for, a port of 0 replaced by the one that was free; once started.
  virtual const std::vector<std::string>& addresses() const = 0;
};

// Unavailable, with all of those addresses.
absl::Status CannotListen(const std::vector<std::string>& addresses);

}  // namespace opmill

#endif  // OPMILL_SERVER_NETWORK_LISTENER_H_
