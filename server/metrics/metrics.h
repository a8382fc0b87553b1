// The page for Prometheus: the values of GetStatistics, and those of the process.
#ifndef OPMILL_SERVER_METRICS_METRICS_H_
#define OPMILL_SERVER_METRICS_METRICS_H_

#include <string>

#include "kernels/base/byte_budget.h"
#include "kernels/engine/device.h"
#include "kernels/engine/operator_cache.h"
#include "server/access/access.h"
#include "server/config/options.h"
#include "server/execution/executor.h"
#include "server/execution/open_calls.h"
#include "server/http/rest_server.h"
#include "server/models/inline_models.h"
#include "server/models/model_table.h"
#include "server/network/connections.h"
#include "server/observe/statistics.h"
#include "server/tensors/tensor_store.h"
#include "server/traces/traces.h"

namespace opmill {

struct MetricsSources {
  const Device& device;
  const OperatorCache& cache;
  const TensorStore& tensors;
  const Executor& executor;
  const Statistics& statistics;
  const OpenCalls& open_calls;
  const Access& access;
  const ModelTable& models;
  const InlineModels& inline_models;
  const ByteBudget& model_bytes;
  const Limits& limits;
  Connections& connections;
  const RestServer* rest;  // null if disabled
  const Traces* traces;    // null if disabled
};

// In Prometheus' text format. `ready` is the answer of /readyz.
std::string MetricsText(const MetricsSources& sources, bool ready);

}  // namespace opmill

#endif  // OPMILL_SERVER_METRICS_METRICS_H_
