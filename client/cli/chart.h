// Line charts as SVG.
#ifndef OPMILL_CLIENT_CLI_CHART_H_
#define OPMILL_CLIENT_CLI_CHART_H_

#include <string>
#include <vector>

namespace opmill {

struct ChartLine {
  std::string name;
  std::vector<double> values;  // not negative; one per label of the x axis
};

// Has its own y axis, which starts at 0.
struct ChartPanel {
  std::string title;  // including the unit
  std::vector<ChartLine> lines;
};

// A self-contained document: panels below each other with the same x axis, whose labels are equally
// spaced.
std::string SvgChart(const std::string& title, const std::string& x_title,
                     const std::vector<std::string>& x_labels,
                     const std::vector<ChartPanel>& panels);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_CHART_H_
