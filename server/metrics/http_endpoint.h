// Serves a few pages over HTTP, for probes and monitoring.
#ifndef OPMILL_SERVER_METRICS_HTTP_ENDPOINT_H_
#define OPMILL_SERVER_METRICS_HTTP_ENDPOINT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace opmill {

// Supports GET and HEAD, with one request per connection. Browsers load nothing from elsewhere for
// a page, run only scripts that are pages of their own, and show none to other sites. One thread
// serves all connections and never waits for one of them, so clients that send half a request or do
// not read cannot delay others: each connection has a few seconds, and the oldest one is closed
// when there are too many.
class HttpEndpoint {
 public:
  struct Answer {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };
  // Maps paths to functions that create the pages. They run on the endpoint's thread, so each may
  // take a few milliseconds at most.
  using Pages = std::map<std::string, std::function<Answer()>, std::less<>>;

  // Listens on host:port when this returns; port 0 selects a free port.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Listen(const std::string& address,
                                                              Pages pages);
  // After the destructor no page function is running.
  virtual ~HttpEndpoint() = default;

  // With the selected port.
  virtual const std::string& address() const = 0;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_METRICS_HTTP_ENDPOINT_H_
