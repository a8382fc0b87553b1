#include "server/metrics_endpoint.h"

namespace opmill {

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> ListenForMetrics(const std::string&,
                                                                  const MetricsSources&,
                                                                  const std::function<bool()>&) {
  return absl::FailedPreconditionError(
      "--metrics_address: this build of the server has no metrics (OPMILL_METRICS was off).");
}

}  // namespace opmill
