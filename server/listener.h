// Where callers connect. Bounds their connections, each of which costs gRPC some kilobytes and the
// process a descriptor.
#ifndef OPMILL_SERVER_LISTENER_H_
#define OPMILL_SERVER_LISTENER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"

namespace opmill {

// Newer versions of gRPC bound connections by themselves, where a channel argument says so. Older
// ones, which Debian has, do not, and stop accepting for good once the process may open no more
// descriptors. So where the system lets connections be handed over (POSIX), this accepts them,
// closes at once those past the limit, and gives the others to gRPC; elsewhere gRPC listens.
class Listener {
 public:
  using MakeCredentials = std::function<std::shared_ptr<grpc::ServerCredentials>()>;

  // Listens, and takes no connection yet. `make_credentials` is called for each port of gRPC's.
  // Unavailable where an address cannot be had.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(const std::vector<std::string>& addresses,
                                                          uint32_t max_connections,
                                                          const MakeCredentials& make_credentials,
                                                          grpc::ServerBuilder& builder);
  // Connections go on without it. It ends before the server that the builder has built.
  virtual ~Listener() = default;

  // Once the server is built. Unavailable as Create.
  virtual absl::Status Start() = 0;

  // The addresses asked for, a port of 0 replaced by the one that was free; once started.
  virtual const std::vector<std::string>& addresses() const = 0;
  // Open now, and closed because of the limit; 0 where gRPC keeps them to itself.
  virtual uint64_t connections() = 0;
  virtual uint64_t refused_connections() const = 0;
};

// Unavailable, with all of those addresses.
absl::Status CannotListen(const std::vector<std::string>& addresses);

}  // namespace opmill

#endif  // OPMILL_SERVER_LISTENER_H_
