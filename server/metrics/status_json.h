// What the page for people needs beside the metrics: names, states and sentences.
#ifndef OPMILL_SERVER_METRICS_STATUS_JSON_H_
#define OPMILL_SERVER_METRICS_STATUS_JSON_H_

#include <cstddef>
#include <string>

#include "server/metrics/metrics.h"

namespace opmill {

struct Readiness {
  bool is_ready = false;  // for new calls
  std::string text;       // "ready", possibly with a remark, or why it is not
};

// Models that are listed: those with problems, then those with the most requests.
inline constexpr size_t kMostListedModels = 50;

// One JSON object: usually a few kilobytes, at most 256 KiB if each byte has to be escaped.
std::string StatusJson(const MetricsSources& sources, const Readiness& readiness);

}  // namespace opmill

#endif  // OPMILL_SERVER_METRICS_STATUS_JSON_H_
