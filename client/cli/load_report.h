// Reports of measurements as text, JSON and charts.
#ifndef OPMILL_CLIENT_CLI_LOAD_REPORT_H_
#define OPMILL_CLIENT_CLI_LOAD_REPORT_H_

#include <string>
#include <vector>

#include "client/cli/load.h"

namespace opmill {

// All values of one run.
std::string ReportText(const LoadReport& report);
// A table with one row per run.
std::string ReportTable(const std::vector<LoadReport>& reports);
// A JSON object.
std::string ReportJson(const LoadReport& report);
// An SVG chart of latency and rate by concurrency.
std::string ReportChart(const std::string& title, const std::vector<LoadReport>& reports);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LOAD_REPORT_H_
