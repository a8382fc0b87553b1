#include "client/cli/explain_report.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/text_table.h"
#include "kernels/base/excerpt.h"
#include "proto/duration.h"

namespace opmill {
namespace {

using Fate = v1::ExplainedNode::Fate;

constexpr size_t kMostRows = 20;
constexpr size_t kMostOperators = 6;  // of a step, in a row
constexpr size_t kMostNameBytes = 40;
constexpr size_t kMostTextBytes = 72;

// "Conv+Relu", of the nodes of a step.
std::string OperatorsText(const v1::ExplainModelResponse& explained,
                          const v1::ExplainedStep& step) {
  std::vector<std::string> names;
  for (const uint32_t node : step.nodes()) {
    names.push_back(Excerpt(explained.nodes(static_cast<int>(node)).operator_()));
  }
  const size_t left_out = names.size() - std::min(names.size(), kMostOperators);
  names.resize(names.size() - left_out);
  return absl::StrCat(absl::StrJoin(names, "+"),
                      left_out > 0 ? absl::StrCat("+", left_out, " more") : "");
}

std::string NameText(const v1::ExplainModelResponse& explained, const v1::ExplainedStep& step) {
  if (step.nodes().empty()) return "";
  return Excerpt(explained.nodes(static_cast<int>(step.nodes(0))).name(), kMostNameBytes);
}

std::vector<std::string> RowOf(const v1::ExplainModelResponse& explained, int s, double share) {
  const v1::ExplainedStep& step = explained.steps(s);
  std::vector<std::string> row = {absl::StrCat(s)};
  if (HasStepTimes(explained)) row.push_back(DurationText(DecodeDuration(step.duration())));
  const std::vector<std::string> others = {absl::StrFormat("%.1f%%", 100 * share),
                                           BytesText(step.read_bytes()),
                                           BytesText(step.written_bytes()),
                                           OperatorsText(explained, step),
                                           NameText(explained, step),
                                           Excerpt(step.text(), kMostTextBytes)};
  row.insert(row.end(), others.begin(), others.end());
  return row;
}

std::string Table(const v1::ExplainModelResponse& explained) {
  const std::vector<double> shares = SharesOf(explained);
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  std::vector<std::vector<std::string>> rows = {{"step"}};
  if (HasStepTimes(explained)) rows[0].emplace_back("time");
  for (const char* const title : {"share", "read", "written", "nodes", "first node", "computes"}) {
    rows[0].emplace_back(title);
  }
  const size_t shown = std::min(order.size(), kMostRows);
  double left_out = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i < shown) {
      rows.push_back(RowOf(explained, static_cast<int>(order[i]), shares[order[i]]));
    } else {
      left_out += shares[order[i]];
    }
  }
  std::string table = TextTable(rows, /*align_right=*/false);
  if (shown < order.size()) {
    absl::StrAppendFormat(&table, "and %d more, %.1f%%\n", order.size() - shown, 100 * left_out);
  }
  return table;
}

std::string FatesText(const v1::ExplainModelResponse& explained) {
  struct Word {
    Fate fate;
    const char* text;
  };
  static constexpr std::array<Word, 6> kWords = {
      {{v1::ExplainedNode::FATE_STEP, "step"},
       {v1::ExplainedNode::FATE_FUSED, "fused"},
       {v1::ExplainedNode::FATE_SEVERAL, "several steps"},
       {v1::ExplainedNode::FATE_VIEW, "view"},
       {v1::ExplainedNode::FATE_CONSTANT, "constant"},
       {v1::ExplainedNode::FATE_UNUSED, "unused"}}};
  std::vector<std::string> parts;
  for (const Word& word : kWords) {
    const auto count =
        std::count_if(explained.nodes().begin(), explained.nodes().end(),
                      [&](const v1::ExplainedNode& node) { return node.fate() == word.fate; });
    if (count > 0) parts.push_back(absl::StrCat(word.text, " ", count));
  }
  return absl::StrJoin(parts, ", ");
}

std::string TimesText(const v1::ExplainModelResponse& explained) {
  std::string text =
      explained.was_cached()
          ? "It was compiled already."
          : absl::StrCat("Compiling took ",
                         DurationText(DecodeDuration(explained.compile_duration())), ".");
  if (!explained.has_statistics()) return text;
  absl::StrAppend(&text, " The run took ",
                  DurationText(DecodeDuration(explained.statistics().compute())), ", ");
  if (!HasStepTimes(explained)) {
    return absl::StrCat(text, "and the device does not measure single steps.");
  }
  absl::StrAppend(&text, "all steps together ", DurationText(TimeOfSteps(explained)));
  if (explained.threads() == 0) return absl::StrCat(text, " by the device's clock.");
  return absl::StrCat(text, ", on ", explained.threads(),
                      explained.threads() == 1 ? " thread." : " threads.");
}

}  // namespace

void TakeShorterTimes(const v1::ExplainModelResponse& run, v1::ExplainModelResponse& best) {
  if (run.steps_size() != best.steps_size() || run.threads() != best.threads() ||
      HasStepTimes(run) != HasStepTimes(best)) {
    return;  // another device has computed it
  }
  const auto take = [](const google::protobuf::Duration& from, google::protobuf::Duration& to) {
    if (DecodeDuration(from) < DecodeDuration(to)) to = from;
  };
  for (int s = 0; s < run.steps_size(); ++s) {
    if (!run.steps(s).has_duration()) continue;
    take(run.steps(s).duration(), *best.mutable_steps(s)->mutable_duration());
  }
  take(run.statistics().compute(), *best.mutable_statistics()->mutable_compute());
}

bool HasStepTimes(const v1::ExplainModelResponse& explained) {
  return explained.steps_size() > 0 && explained.steps(0).has_duration();
}

std::vector<double> SharesOf(const v1::ExplainModelResponse& explained) {
  std::vector<double> shares;
  for (const v1::ExplainedStep& step : explained.steps()) {
    shares.push_back(HasStepTimes(explained)
                         ? absl::ToDoubleSeconds(DecodeDuration(step.duration()))
                         : static_cast<double>(step.read_bytes() + step.written_bytes()));
  }
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = total > 0 ? share / total : 0;
  return shares;
}

uint64_t BytesMoved(const v1::ExplainModelResponse& explained) {
  uint64_t bytes = 0;
  for (const v1::ExplainedStep& step : explained.steps()) {
    bytes += step.read_bytes() + step.written_bytes();
  }
  return bytes;
}

absl::Duration TimeOfSteps(const v1::ExplainModelResponse& explained) {
  absl::Duration time;
  for (const v1::ExplainedStep& step : explained.steps()) time += DecodeDuration(step.duration());
  return time;
}

std::string ExplainSummary(const v1::ExplainModelResponse& explained) {
  std::string text;
  if (!explained.nodes().empty()) {
    absl::StrAppend(&text, explained.nodes_size(), " nodes: ", FatesText(explained), ".\n");
  }
  absl::StrAppend(&text, explained.steps_size(), " steps move ", BytesText(BytesMoved(explained)),
                  "; with one for each operator, ", explained.unfused_steps(), " would move ",
                  BytesText(explained.unfused_bytes()), ".\n");
  absl::StrAppend(&text, "Intermediates take ", BytesText(explained.arena_bytes()),
                  ", of which at most ", BytesText(explained.live_bytes()),
                  " are needed at the same time.\n");
  return absl::StrCat(text, TimesText(explained), "\n");
}

std::string ExplainText(const v1::ExplainModelResponse& explained) {
  return absl::StrCat(Table(explained), "\n", ExplainSummary(explained));
}

}  // namespace opmill
