// Reports of measurements as text, JSON and charts.
#ifndef OPMILL_CLIENT_CLI_LOAD_REPORT_H_
#define OPMILL_CLIENT_CLI_LOAD_REPORT_H_

#include <string>
#include <vector>

#include "client/cli/load.h"

namespace opmill {

// One run in full.
std::string ReportText(const LoadReport& report);
// A row for each run.
std::string ReportTable(const std::vector<LoadReport>& reports);
// A JSON object.
std::string ReportJson(const LoadReport& report);
// SVG: latency and rate over the number of executions at a time.
std::string ReportChart(const std::string& title, const std::vector<LoadReport>& reports);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LOAD_REPORT_H_
