#include "client/cli/chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/markup.h"

namespace opmill {
namespace {

// In pixels.
constexpr double kWidth = 760;
constexpr double kLeft = 80;
constexpr double kRight = kWidth - 40;
constexpr double kTitleHeight = 50;
constexpr double kPanelHeight = 280;
constexpr double kPlotTop = 40;  // within the panel, below its title and legend
constexpr double kPlotBottom = kPanelHeight - 30;
constexpr double kFooterHeight = 30;
constexpr double kNameWidth = 70;

constexpr int kTicks = 5;  // approximate
// Distinguishable with colour blindness, and in print.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#555555"};

std::string Text(double x, double y, const char* anchor, const std::string& text,
                 const char* more = "") {
  return absl::StrFormat("<text x='%.1f' y='%.1f' text-anchor='%s'%s>%s</text>\n", x, y, anchor,
                         more, EscapeMarkup(text));
}

std::string Line(double x1, double y1, double x2, double y2, const char* colour) {
  return absl::StrFormat("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s'/>\n", x1, y1,
                         x2, y2, colour);
}

// 1, 2 or 5 times a power of ten.
double StepFor(double largest) {
  const double power = std::pow(10, std::floor(std::log10(largest / kTicks)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * kTicks >= largest) return factor * power;
  }
  return 10 * power;
}

double XOf(size_t index, size_t count) {
  return kLeft + (kRight - kLeft) * (static_cast<double>(index) + 0.5) / static_cast<double>(count);
}

std::string Polyline(const ChartLine& line, const char* colour, double top, double unit_height) {
  std::string points;
  std::string dots;
  for (size_t i = 0; i < line.values.size(); ++i) {
    const double x = XOf(i, line.values.size());
    const double y = top + kPlotBottom - line.values[i] * unit_height;
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
    absl::StrAppendFormat(&dots,
                          "<circle cx='%.1f' cy='%.1f' r='4' fill='%s'><title>%s %.4g</title>"
                          "</circle>\n",
                          x, y, colour, EscapeMarkup(line.name), line.values[i]);
  }
  return absl::StrFormat("<polyline points='%s' fill='none' stroke='%s' stroke-width='2'/>\n%s",
                         points, colour, dots);
}

std::string PanelText(const ChartPanel& panel, const std::vector<std::string>& x_labels,
                      double top) {
  double largest = 0;
  for (const ChartLine& line : panel.lines) {
    for (const double value : line.values) largest = std::max(largest, value);
  }
  if (largest <= 0) largest = 1;
  const double step = StepFor(largest);
  const double ticks = std::ceil(largest / step);
  const double unit_height = (kPlotBottom - kPlotTop) / (ticks * step);

  std::string svg = Text(kLeft, top + 20, "start", panel.title, " font-weight='bold'");
  for (int tick = 0; tick <= static_cast<int>(ticks); ++tick) {
    const double y = top + kPlotBottom - tick * step * unit_height;
    absl::StrAppend(&svg, Line(kLeft, y, kRight, y, tick == 0 ? "#333" : "#ddd"),
                    Text(kLeft - 10, y + 5, "end", absl::StrFormat("%.6g", tick * step)));
  }
  for (size_t i = 0; i < x_labels.size(); ++i) {
    absl::StrAppend(&svg,
                    Text(XOf(i, x_labels.size()), top + kPlotBottom + 20, "middle", x_labels[i]));
  }
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    const char* const colour = kColours[i % std::size(kColours)];
    absl::StrAppend(&svg, Polyline(panel.lines[i], colour, top, unit_height));
    if (panel.lines.size() == 1) break;  // named by the panel's title
    const double x = kRight - kNameWidth * static_cast<double>(panel.lines.size() - i);
    absl::StrAppendFormat(&svg, "<rect x='%.1f' y='%.1f' width='12' height='12' fill='%s'/>\n", x,
                          top + 9, colour);
    absl::StrAppend(&svg, Text(x + 18, top + 20, "start", panel.lines[i].name));
  }
  return svg;
}

}  // namespace

std::string SvgChart(const std::string& title, const std::string& x_title,
                     const std::vector<std::string>& x_labels,
                     const std::vector<ChartPanel>& panels) {
  const double bottom = kTitleHeight + kPanelHeight * static_cast<double>(panels.size());
  const double height = bottom + kFooterHeight;
  std::string svg = absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' viewBox='0 0 %g %g' "
      "font-family='sans-serif' font-size='14' fill='#222'>\n"
      "<rect width='100%%' height='100%%' fill='white'/>\n",
      kWidth, height, kWidth, height);
  absl::StrAppend(&svg, Text(kWidth / 2, 30, "middle", title, " font-size='18'"));
  for (size_t i = 0; i < panels.size(); ++i) {
    absl::StrAppend(
        &svg, PanelText(panels[i], x_labels, kTitleHeight + kPanelHeight * static_cast<double>(i)));
  }
  absl::StrAppend(&svg, Text((kLeft + kRight) / 2, bottom + 15, "middle", x_title), "</svg>\n");
  return svg;
}

}  // namespace opmill
