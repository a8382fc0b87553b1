// Line charts as SVG.
#ifndef OPMILL_CLIENT_CLI_CHART_H_
#define OPMILL_CLIENT_CLI_CHART_H_

#include <string>
#include <vector>

namespace opmill {

struct ChartLine {
  std::string name;
  std::vector<double> values;  // not negative; one for each label of the x axis
};

// A panel with its own y axis, which starts at 0.
struct ChartPanel {
  std::string title;  // including the unit
  std::vector<ChartLine> lines;
};

// Returns a self-contained SVG document: the panels below each other, with a shared x axis whose
// labels are at equal distances.
std::string SvgChart(const std::string& title, const std::string& x_title,
                     const std::vector<std::string>& x_labels,
                     const std::vector<ChartPanel>& panels);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_CHART_H_
