// A few pages over HTTP, for those who watch the server.
#ifndef OPMILL_SERVER_HTTP_ENDPOINT_H_
#define OPMILL_SERVER_HTTP_ENDPOINT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct mg_connection;
struct mg_context;

namespace opmill {

// GET and HEAD alone, a connection for each.
class HttpEndpoint {
 public:
  struct Answer {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };
  using Pages = std::map<std::string, std::function<Answer()>, std::less<>>;  // by path

  // Listens when this returns; at host:port, where port 0 takes a free one.
  // Pages are made on threads of the endpoint, several at a time.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Listen(const std::string& address,
                                                              Pages pages);
  // No page is being made after.
  ~HttpEndpoint();

  // With the port that was free.
  const std::string& address() const { return address_; }

 private:
  explicit HttpEndpoint(Pages pages) : pages_(std::move(pages)) {}
  static int OnRequest(mg_connection* connection);
  Answer Make(absl::string_view method, absl::string_view path) const;

  const Pages pages_;
  std::string address_;
  mg_context* context_ = nullptr;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_HTTP_ENDPOINT_H_
