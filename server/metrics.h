// What Prometheus is told: the numbers that GetStatistics has, and those of the
// process.
#ifndef OPMILL_SERVER_METRICS_H_
#define OPMILL_SERVER_METRICS_H_

#include <string>

#include "kernels/device.h"
#include "kernels/operator_cache.h"
#include "server/access.h"
#include "server/connections.h"
#include "server/executor.h"
#include "server/open_calls.h"
#include "server/options.h"
#include "server/statistics.h"

namespace opmill {

struct MetricsSources {
  const Device& device;
  const OperatorCache& cache;
  const Executor& executor;
  const Statistics& statistics;
  const OpenCalls& open_calls;
  const Access& access;
  const Limits& limits;
  Connections& connections;
};

// In Prometheus' text format. `ready` is what /readyz says.
std::string MetricsText(const MetricsSources& sources, bool ready);

}  // namespace opmill

#endif  // OPMILL_SERVER_METRICS_H_
