#include "client/cli/load_report.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/chart.h"
#include "client/cli/text_table.h"

namespace opmill {
namespace {

absl::Duration Percentile(const LoadReport& report, double percent) {
  return Quantile(report, percent / 100);
}

double GigabytesPerSecond(const LoadReport& report) {
  return CallsPerSecond(report) * static_cast<double>(report.bytes_per_call) / 1e9;
}

std::string Mean(absl::Duration sum, const LoadReport& report) {
  return DurationText(sum / static_cast<double>(report.latencies.size()));
}

// The unit that fits the latencies.
struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit UnitFor(const std::vector<LoadReport>& reports) {
  absl::Duration longest;
  for (const LoadReport& report : reports) longest = std::max(longest, Percentile(report, 99));
  if (longest < absl::Milliseconds(1)) return {"us", 1e-6};
  if (longest < absl::Seconds(1)) return {"ms", 1e-3};
  return {"s", 1};
}

constexpr double kPercents[] = {50, 90, 99};

}  // namespace

std::string ReportText(const LoadReport& report) {
  const std::string first = absl::StrCat("first call  ", DurationText(report.first_call), "\n");
  if (report.latencies.empty()) return absl::StrCat(first, "No execution ended in time.\n");
  const double count = static_cast<double>(report.latencies.size());
  return absl::StrCat(
      first,
      absl::StrFormat("calls       %d in %s: %.1f per second, %.3f GB/s in and out\n",
                      report.latencies.size(), DurationText(report.measured),
                      CallsPerSecond(report), GigabytesPerSecond(report)),
      absl::StrFormat("latency     p50 %s, p90 %s, p99 %s, max %s\n",
                      DurationText(Percentile(report, 50)), DurationText(Percentile(report, 90)),
                      DurationText(Percentile(report, 99)), DurationText(report.latencies.back())),
      absl::StrFormat("the server  upload %s, queue %s, compute %s, download %s; %.1f in a batch\n",
                      Mean(report.server.upload, report), Mean(report.server.queue, report),
                      Mean(report.server.compute, report), Mean(report.server.download, report),
                      static_cast<double>(report.server.batch_size) / count),
      "All results were bit-identical to the first.\n");
}

std::string ReportTable(const std::vector<LoadReport>& reports) {
  std::vector<std::vector<std::string>> rows = {
      {"concurrency", "calls/s", "GB/s", "p50", "p90", "p99"}};
  for (const LoadReport& report : reports) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {absl::StrCat(report.concurrency), absl::StrFormat("%.1f", CallsPerSecond(report)),
           absl::StrFormat("%.3f", GigabytesPerSecond(report))};
    for (const double percent : kPercents) {
      row.push_back(report.latencies.empty() ? "-" : DurationText(Percentile(report, percent)));
    }
  }
  return TextTable(rows, /*align_right=*/true);
}

std::string ReportJson(const LoadReport& report) {
  const double count = std::max<double>(1, static_cast<double>(report.latencies.size()));
  const auto seconds = [](absl::Duration duration) {
    return absl::StrFormat("%.9f", absl::ToDoubleSeconds(duration));
  };
  return absl::StrCat(
      "{\"concurrency\":", report.concurrency, ",\"calls\":", report.latencies.size(),
      ",\"measured_s\":", seconds(report.measured),
      ",\"first_call_s\":", seconds(report.first_call),
      ",\"calls_per_s\":", absl::StrFormat("%.3f", CallsPerSecond(report)),
      ",\"gb_per_s\":", absl::StrFormat("%.6f", GigabytesPerSecond(report)),
      ",\"bytes_per_call\":", report.bytes_per_call,
      ",\"latency_s\":{\"p50\":", seconds(Percentile(report, 50)),
      ",\"p90\":", seconds(Percentile(report, 90)), ",\"p99\":", seconds(Percentile(report, 99)),
      ",\"max\":", seconds(Percentile(report, 100)),
      "},\"server_mean_s\":{\"upload\":", seconds(report.server.upload / count),
      ",\"queue\":", seconds(report.server.queue / count),
      ",\"compute\":", seconds(report.server.compute / count),
      ",\"download\":", seconds(report.server.download / count), "},\"mean_batch_size\":",
      absl::StrFormat("%.3f", static_cast<double>(report.server.batch_size) / count), "}");
}

std::string ReportChart(const std::string& title, const std::vector<LoadReport>& reports) {
  const TimeUnit unit = UnitFor(reports);
  std::vector<std::string> labels;
  ChartPanel latency{absl::StrCat("Latency, ", unit.name), {}};
  ChartPanel rate{"Calls per second", {{"calls per second", {}}}};
  for (const double percent : kPercents) {
    latency.lines.push_back({absl::StrCat("p", percent), {}});
  }
  for (const LoadReport& report : reports) {
    labels.push_back(absl::StrCat(report.concurrency));
    rate.lines[0].values.push_back(CallsPerSecond(report));
    for (size_t i = 0; i < std::size(kPercents); ++i) {
      latency.lines[i].values.push_back(absl::ToDoubleSeconds(Percentile(report, kPercents[i])) /
                                        unit.seconds);
    }
  }
  return SvgChart(title, "Concurrent executions", labels, {latency, rate});
}

}  // namespace opmill
