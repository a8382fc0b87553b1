#include "server/observe/metrics_endpoint.h"

#include <utility>

namespace opmill {

absl::StatusOr<std::unique_ptr<HttpEndpoint>> ListenForMetrics(
    const std::string& address, const MetricsSources& sources,
    const std::function<Readiness()>& readiness) {
  using Answer = HttpEndpoint::Answer;
  HttpEndpoint::Pages pages;
  pages["/healthz"] = [] { return Answer{.body = "alive\n"}; };
  pages["/readyz"] = [readiness] {
    const Readiness now = readiness();
    return Answer{.status = now.is_ready ? 200 : 503, .body = now.text + "\n"};
  };
  pages["/metrics"] = [sources, readiness] {
    return Answer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = MetricsText(sources, readiness().is_ready)};
  };
  return HttpEndpoint::Listen(address, std::move(pages));
}

}  // namespace opmill
