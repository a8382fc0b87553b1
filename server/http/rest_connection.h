// One connection of RestServer, from its first byte to its end.
#ifndef OPMILL_SERVER_HTTP_REST_CONNECTION_H_
#define OPMILL_SERVER_HTTP_REST_CONNECTION_H_

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "server/execution/admission.h"
#include "server/host/worker_pool.h"
#include "server/http/rest_call.h"
#include "server/http/rest_connections.h"
#include "server/http/rest_server.h"

namespace opmill {

// What the connections of a server share.
struct RestShared {
  static constexpr uint32_t kHeavyThreads = 2;

  RestServer::Parts parts;
  MemoryBudget bodies;
  RestConnections connections;
  grpc::GenericStub services;
  RestParts call_parts;
  // For what would make other callers wait.
  WorkerPool heavy{kHeavyThreads};
  std::atomic<uint64_t> requests = 0;
  std::atomic<uint64_t> failed_requests = 0;

  explicit RestShared(const RestServer::Parts& from)
      : parts(from),
        bodies(from.body_bytes, "the memory for bodies of HTTP requests"),
        connections(from.limits),
        services(from.services),
        call_parts{from.access, from.executor, from.limits, bodies, services} {}
};

// Serves the requests of the connection until it is over, in the socket's executor, which is a
// strand. Closes it if there is no room for it. `peer` is gRPC's name of the caller; `tls` is null
// for clear text. Neither the executor nor `shared` may end before the connection.
void ServeConnection(RestShared& shared, std::string peer, boost::asio::ip::tcp::socket socket,
                     std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_REST_CONNECTION_H_
