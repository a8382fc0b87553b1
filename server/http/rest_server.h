// The Open Inference Protocol over HTTP/1.1.
#ifndef OPMILL_SERVER_HTTP_REST_SERVER_H_
#define OPMILL_SERVER_HTTP_REST_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "server/access/access.h"
#include "server/config/options.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"

namespace opmill {

struct RestCounters {
  uint64_t open_connections = 0;
  uint64_t refused_connections = 0;  // all others were in use
  uint64_t closed_connections = 0;   // to make room, or because their bodies came too slowly
  uint64_t requests = 0;
  uint64_t failed_requests = 0;  // answered with a status of 400 or more
  uint64_t body_bytes = 0;       // memory of requests that arrive or are decoded
  uint64_t body_bytes_limit = 0;
};

// Each request becomes a call of the gRPC services, through an in-process channel, on behalf of its
// caller. Executor, limits, logs and errors are therefore those of gRPC. What is particular to HTTP
// is bounded here: connections, headers, the memory for bodies, and how slowly callers may send and
// read. Thread-safe.
class RestServer {
 public:
  // All of it must outlive the server.
  struct Parts {
    Access& access;
    Executor& executor;
    OpenCalls& open_calls;
    const Limits& limits;
    uint64_t body_bytes;  // the memory for bodies
    std::shared_ptr<grpc::Channel> services;
  };

  // Listens at host:port when this returns; port 0 selects a free port. TLS is that of `access`.
  static absl::StatusOr<std::unique_ptr<RestServer>> Listen(const std::string& address,
                                                            const Parts& parts);
  // Ends the calls in progress.
  virtual ~RestServer() = default;

  // With the selected port.
  virtual const std::string& address() const = 0;
  virtual RestCounters counters() const = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_REST_SERVER_H_
