#include "client/cli/explain_svg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/explain_report.h"
#include "client/cli/layers.h"
#include "client/cli/markup.h"
#include "client/cli/text_table.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/utf8.h"
#include "proto/duration.h"

namespace opmill {
namespace {

// In pixels.
constexpr double kMargin = 24;
constexpr double kBoxWidth = 300;
constexpr double kPadding = 8;  // of a box
constexpr double kRowHeight = 15;
constexpr double kCharWidth = 6.7;  // of monospaced text of 11 pixels; the widest fonts have 6.63
constexpr double kTitleHeight = 34;

constexpr char kStyle[] = R"(<style>
text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px;fill:#1a1a1a;white-space:pre}
.title{font-size:18px;font-weight:bold}
.head{font-weight:bold}
.dim{fill:#555}
.page{fill:#fff}
.box{fill:#fff;stroke:#888}
.heat{fill:#f0a030}
.line{fill:none;stroke:#9aa4ae}
g:hover>.box{stroke-width:2}
@media (prefers-color-scheme:dark){
text{fill:#eee}
.dim{fill:#ccc}
.page{fill:#15181b}
.box{fill:#22272b;stroke:#79818a}
.heat{fill:#b35a00}
.line{stroke:#5d666f}
}
</style>
)";

// Names of files may have any character.
std::string Escape(absl::string_view text) { return EscapeMarkup(Excerpt(text, 4096)); }

std::string Text(double x, double y, absl::string_view row_class, absl::string_view text) {
  return absl::StrFormat("<text class='%s' x='%.1f' y='%.1f'>%s</text>\n", row_class, x, y,
                         Escape(text));
}

constexpr auto kMostChars = static_cast<size_t>((kBoxWidth - 2 * kPadding) / kCharWidth);

// At most as wide as a box.
std::string Fitted(absl::string_view text) {
  size_t bytes = kMostChars;
  std::string fitted = Excerpt(text, bytes);
  while (fitted.size() > kMostChars) fitted = Excerpt(text, --bytes);
  return fitted;
}

// The end of a long name: its beginning is often the same for all nodes.
std::string FittedNode(const v1::ExplainedNode& node) {
  std::string fitted = absl::StrCat(node.operator_(), " ", Excerpt(node.name(), kMostChars));
  for (size_t start = 1; fitted.size() > kMostChars && start < node.name().size(); ++start) {
    const absl::string_view end = absl::string_view(node.name()).substr(start);
    if (IsUtf8(end)) fitted = absl::StrCat(node.operator_(), " ...", Excerpt(end, kMostChars));
  }
  return Fitted(fitted);
}

class SvgWriter {
 public:
  SvgWriter(const std::string& title, const v1::ExplainModelResponse& explained)
      : title_(title), explained_(explained), shares_(SharesOf(explained)) {
    for (const double share : shares_) most_ = std::max(most_, share);
    for (int s = 0; s < explained.steps_size(); ++s) rows_.push_back(RowsOf(s));
    std::vector<LayerBox> boxes;
    for (size_t s = 0; s < rows_.size(); ++s) {
      const auto& inputs = explained.steps(static_cast<int>(s)).inputs();
      boxes.push_back({kBoxWidth, HeightOf(s), {inputs.begin(), inputs.end()}});
    }
    layers_ = PlaceInLayers(boxes);
    summary_ = absl::StrSplit(ExplainSummary(explained), '\n', absl::SkipEmpty());
    summary_.push_back(HasStepTimes(explained)
                           ? "The stronger the colour of a step, the more of the time it takes."
                           : "The stronger the colour of a step, the more bytes it moves: times "
                             "are not measured.");
    if (HasMissingLines()) {
      summary_.push_back(
          absl::StrCat("Lines that pass more than ", kMostPassedLayers,
                       " layers are left out; a step's tooltip has all that it reads."));
    }
  }

  std::string Write() const {
    const double width = std::max(layers_.width, HeaderWidth()) + 2 * kMargin;
    const double top =
        kMargin + kTitleHeight + kRowHeight * static_cast<double>(summary_.size()) + kMargin;
    const double height = top + layers_.height + kMargin;
    const Point origin = {(width - layers_.width) / 2, top};
    std::string svg = absl::StrFormat(
        "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' viewBox='0 0 %.0f "
        "%.0f'>\n<title>%s</title>\n%s<rect class='page' width='100%%' height='100%%'/>\n",
        width, height, width, height, Escape(title_), kStyle);
    absl::StrAppend(&svg, Text(kMargin, kMargin + 16, "title", title_));
    for (size_t i = 0; i < summary_.size(); ++i) {
      const double y = kMargin + kTitleHeight + kRowHeight * static_cast<double>(i + 1);
      absl::StrAppend(&svg, Text(kMargin, y - 4, "dim", summary_[i]));
    }
    for (const LayerLine& line : layers_.lines) absl::StrAppend(&svg, Path(line, origin));
    for (size_t s = 0; s < rows_.size(); ++s) absl::StrAppend(&svg, Box(s, origin));
    return absl::StrCat(svg, "</svg>\n");
  }

 private:
  struct Row {
    const char* row_class;
    std::string text;
  };

  const v1::ExplainedStep& StepAt(size_t s) const { return explained_.steps(static_cast<int>(s)); }
  const v1::ExplainedNode& NodeAt(uint32_t n) const {
    return explained_.nodes(static_cast<int>(n));
  }

  std::vector<Row> RowsOf(int s) const {
    const v1::ExplainedStep& step = explained_.steps(s);
    const double share = 100 * shares_[static_cast<size_t>(s)];
    std::vector<Row> rows;
    if (HasStepTimes(explained_)) {
      rows.push_back(
          {"head", absl::StrFormat("step %d, %s, %.1f%%", s,
                                   DurationText(DecodeDuration(step.duration())), share)});
    } else {
      rows.push_back({"head", absl::StrFormat("step %d, %.1f%%", s, share)});
    }
    for (const uint32_t n : step.nodes()) {
      rows.push_back({"", FittedNode(NodeAt(n))});
    }
    if (step.nodes().empty()) rows.push_back({"", Fitted(step.text())});
    rows.push_back({"dim", absl::StrCat(BytesText(step.read_bytes()), " read, ",
                                        BytesText(step.written_bytes()), " written")});
    return rows;
  }

  double HeightOf(size_t s) const {
    return kRowHeight * static_cast<double>(rows_[s].size()) + 2 * kPadding;
  }

  double HeaderWidth() const {
    double width = 12 * static_cast<double>(title_.size());
    for (const std::string& line : summary_) {
      width = std::max(width, kCharWidth * static_cast<double>(line.size()));
    }
    return width;
  }

  bool HasMissingLines() const {
    size_t inputs = 0;
    for (const v1::ExplainedStep& step : explained_.steps()) {
      inputs += static_cast<size_t>(step.inputs_size());
    }
    return layers_.lines.size() < inputs;
  }

  std::string Tooltip(size_t s) const {
    const v1::ExplainedStep& step = StepAt(s);
    std::string text = absl::StrCat("step ", s, ": ", Escape(step.text()), "\n");
    if (!step.inputs().empty()) {
      absl::StrAppend(&text, "reads steps ", absl::StrJoin(step.inputs(), ", "), "\n");
    }
    if (!step.phases().empty()) {
      absl::StrAppend(&text, "parts one after the other, of ", absl::StrJoin(step.phases(), ", "),
                      " tasks\n");
    }
    for (const uint32_t n : step.nodes()) {
      absl::StrAppend(&text, Escape(NodeAt(n).operator_()), " ", Escape(NodeAt(n).name()), "\n");
    }
    return text;
  }

  std::string Box(size_t s, const Point& origin) const {
    const double x = origin.x + layers_.boxes[s].x;
    const double y = origin.y + layers_.boxes[s].y;
    const double heat = most_ > 0 ? 0.85 * std::sqrt(shares_[s] / most_) : 0;
    std::string svg = absl::StrFormat("<g><title>%s</title>\n", Tooltip(s));
    for (const bool is_heat : {false, true}) {
      absl::StrAppendFormat(
          &svg, "<rect class='%s' x='%.1f' y='%.1f' width='%.0f' height='%.0f' rx='4'%s/>\n",
          is_heat ? "heat" : "box", x, y, kBoxWidth, HeightOf(s),
          is_heat ? absl::StrFormat(" fill-opacity='%.2f'", heat) : "");
    }
    for (size_t i = 0; i < rows_[s].size(); ++i) {
      const double baseline = y + kPadding + kRowHeight * static_cast<double>(i + 1) - 4;
      absl::StrAppend(&svg, Text(x + kPadding, baseline, rows_[s][i].row_class, rows_[s][i].text));
    }
    return absl::StrCat(svg, "</g>\n");
  }

  static std::string Path(const LayerLine& line, const Point& origin) {
    std::string path;
    for (size_t i = 0; i < line.points.size(); ++i) {
      const double x = origin.x + line.points[i].x;
      const double y = origin.y + line.points[i].y;
      if (i == 0) {
        absl::StrAppendFormat(&path, "M%.1f %.1f", x, y);
      } else if (i % 2 == 1) {
        absl::StrAppendFormat(&path, "V%.1f", y);
      } else {
        const double from_x = origin.x + line.points[i - 1].x;
        const double middle = origin.y + (line.points[i - 1].y + line.points[i].y) / 2;
        absl::StrAppendFormat(&path, "C%.1f %.1f %.1f %.1f %.1f %.1f", from_x, middle, x, middle, x,
                              y);
      }
    }
    return absl::StrFormat(
        "<path class='line' d='%s'><title>from step %d to step %d</title></path>\n", path,
        line.from, line.to);
  }

  const std::string& title_;
  const v1::ExplainModelResponse& explained_;
  const std::vector<double> shares_;
  double most_ = 0;
  std::vector<std::vector<Row>> rows_;  // of each box
  Layers layers_;
  std::vector<std::string> summary_;
};

}  // namespace

std::string ExplainSvg(const std::string& title, const v1::ExplainModelResponse& explained) {
  return SvgWriter(title, explained).Write();
}

}  // namespace opmill
