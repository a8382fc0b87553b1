// A few pages over HTTP, for those who watch the server.
#ifndef OPMILL_SERVER_OBSERVE_HTTP_ENDPOINT_H_
#define OPMILL_SERVER_OBSERVE_HTTP_ENDPOINT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace opmill {

// GET and HEAD alone, a connection for each. One thread serves all connections and waits for none
// of them, so that those who send half a request, or do not read, delay no one else: they have a
// few seconds, and the oldest of them make room for new connections.
class HttpEndpoint {
 public:
  struct Answer {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };
  // By path. They are made on the endpoint's thread, so each takes some milliseconds at most.
  using Pages = std::map<std::string, std::function<Answer()>, std::less<>>;

  // Listens when this returns; at host:port, where port 0 takes a free one.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Listen(const std::string& address,
                                                              Pages pages);
  // No page is being made after.
  virtual ~HttpEndpoint() = default;

  // With the port that was free.
  virtual const std::string& address() const = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_OBSERVE_HTTP_ENDPOINT_H_
