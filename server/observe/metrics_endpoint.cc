#include "server/observe/metrics_endpoint.h"

#include <utility>

namespace opmill {

absl::StatusOr<std::unique_ptr<HttpEndpoint>> ListenForMetrics(
    const std::string& address, const MetricsSources& sources,
    const std::function<std::string()>& not_ready_reason) {
  using Answer = HttpEndpoint::Answer;
  HttpEndpoint::Pages pages;
  pages["/healthz"] = [] { return Answer{.body = "alive\n"}; };
  pages["/readyz"] = [not_ready_reason] {
    const std::string why = not_ready_reason();
    return why.empty() ? Answer{.body = "ready\n"} : Answer{.status = 503, .body = why + "\n"};
  };
  pages["/metrics"] = [sources, not_ready_reason] {
    return Answer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = MetricsText(sources, not_ready_reason().empty())};
  };
  return HttpEndpoint::Listen(address, std::move(pages));
}

}  // namespace opmill
