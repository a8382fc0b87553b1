// The server's HTTP pages: one for people, /metrics for Prometheus, /healthz and /readyz for
// orchestrators.
#ifndef OPMILL_SERVER_METRICS_METRICS_ENDPOINT_H_
#define OPMILL_SERVER_METRICS_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/metrics/http_endpoint.h"
#include "server/metrics/metrics.h"
#include "server/metrics/status_json.h"

namespace opmill {

// `readiness` and the sources must outlive the endpoint.
absl::StatusOr<std::unique_ptr<HttpEndpoint>> ListenForMetrics(
    const std::string& address, const MetricsSources& sources,
    const std::function<Readiness()>& readiness);

}  // namespace opmill

#endif  // OPMILL_SERVER_METRICS_METRICS_ENDPOINT_H_
