#include "server/metrics_endpoint.h"

#include <utility>

#include "kernels/errors.h"
#include "server/http_endpoint.h"

namespace opmill {
namespace {

class Endpoint final : public MetricsEndpoint {
 public:
  explicit Endpoint(std::unique_ptr<HttpEndpoint> http) : http_(std::move(http)) {}
  const std::string& address() const override { return http_->address(); }

 private:
  const std::unique_ptr<HttpEndpoint> http_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> ListenForMetrics(
    const std::string& address, const MetricsSources& sources, const std::function<bool()>& ready) {
  using Answer = HttpEndpoint::Answer;
  HttpEndpoint::Pages pages;
  pages["/healthz"] = [] { return Answer{.body = "alive\n"}; };
  pages["/readyz"] = [ready] {
    return ready() ? Answer{.body = "ready\n"} : Answer{.status = 503, .body = "draining\n"};
  };
  pages["/metrics"] = [sources, ready] {
    return Answer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = MetricsText(sources, ready())};
  };
  ASSIGN_OR_RETURN(std::unique_ptr<HttpEndpoint> http,
                   HttpEndpoint::Listen(address, std::move(pages)));
  return std::make_unique<Endpoint>(std::move(http));
}

}  // namespace opmill
