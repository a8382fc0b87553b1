// opmill bench: an operator measured through the server.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/common.h"
#include "client/cli/interrupt.h"
#include "client/cli/load.h"
#include "client/cli/operator_flags.h"
#include "client/cli/random_elements.h"
#include "client/cli/text_table.h"
#include "client/cli/verbs.h"
#include "client/names.h"

namespace opmill {
namespace {

constexpr absl::Duration kMaxWarmUp = absl::Seconds(1);

std::optional<size_t> CountElements(const v1::TensorDesc& desc) {
  uint64_t count = 1;
  for (const uint32_t size : desc.sizes()) {
    count *= size;
    if (count > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  }
  return static_cast<size_t>(count);
}

absl::Duration Percentile(const LoadReport& report, double percent) {
  if (report.latencies.empty()) return absl::ZeroDuration();
  const double rank = percent / 100 * static_cast<double>(report.latencies.size());
  const size_t index = static_cast<size_t>(std::max(0.0, rank - 1e-9));
  return report.latencies[std::min(index, report.latencies.size() - 1)];
}

struct Rates {
  double calls_per_second = 0;
  double gigabytes_per_second = 0;
};

Rates RatesOf(const LoadReport& report) {
  const double seconds = absl::ToDoubleSeconds(report.measured);
  if (seconds <= 0) return {};
  const double calls = static_cast<double>(report.latencies.size()) / seconds;
  return {calls, calls * static_cast<double>(report.bytes_per_call) / 1e9};
}

std::string Mean(absl::Duration sum, const LoadReport& report) {
  return DurationText(sum / static_cast<double>(report.latencies.size()));
}

std::string Text(const LoadReport& report) {
  const std::string first = absl::StrCat("first call  ", DurationText(report.first_call), "\n");
  if (report.latencies.empty()) return absl::StrCat(first, "No execution ended in time.\n");
  const Rates rates = RatesOf(report);
  const double count = static_cast<double>(report.latencies.size());
  return absl::StrCat(
      first,
      absl::StrFormat("calls       %d in %s: %.1f a second, %.3f GB/s in and out\n",
                      report.latencies.size(), DurationText(report.measured),
                      rates.calls_per_second, rates.gigabytes_per_second),
      absl::StrFormat("latency     p50 %s, p90 %s, p99 %s, max %s\n",
                      DurationText(Percentile(report, 50)), DurationText(Percentile(report, 90)),
                      DurationText(Percentile(report, 99)), DurationText(report.latencies.back())),
      absl::StrFormat("the server  upload %s, queue %s, compute %s, download %s; %.1f in a batch\n",
                      Mean(report.upload, report), Mean(report.queue, report),
                      Mean(report.compute, report), Mean(report.download, report),
                      static_cast<double>(report.batch_size) / count),
      "Every answer was equal to the first, to the bit.\n");
}

std::string Json(const LoadReport& report) {
  const Rates rates = RatesOf(report);
  const double count = std::max<double>(1, static_cast<double>(report.latencies.size()));
  const auto seconds = [](absl::Duration duration) {
    return absl::StrFormat("%.9f", absl::ToDoubleSeconds(duration));
  };
  return absl::StrCat(
      "{\"calls\":", report.latencies.size(), ",\"measured_s\":", seconds(report.measured),
      ",\"first_call_s\":", seconds(report.first_call),
      ",\"calls_per_s\":", absl::StrFormat("%.3f", rates.calls_per_second),
      ",\"gb_per_s\":", absl::StrFormat("%.6f", rates.gigabytes_per_second),
      ",\"bytes_per_call\":", report.bytes_per_call,
      ",\"latency_s\":{\"p50\":", seconds(Percentile(report, 50)),
      ",\"p90\":", seconds(Percentile(report, 90)), ",\"p99\":", seconds(Percentile(report, 99)),
      ",\"max\":", seconds(Percentile(report, 100)),
      "},\"server_mean_s\":{\"upload\":", seconds(report.upload / count),
      ",\"queue\":", seconds(report.queue / count),
      ",\"compute\":", seconds(report.compute / count),
      ",\"download\":", seconds(report.download / count), "},\"mean_batch_size\":",
      absl::StrFormat("%.3f", static_cast<double>(report.batch_size) / count), "}\n");
}

int Bench(const CommandLine& line) {
  FlagReader flags(line);
  const v1::TensorDesc input = ReadTensor(flags);
  LoadOptions options;
  options.desc = ReadOperator(flags.Required("operator"), input, flags);
  options.execution.feature_level = ReadFeatureLevel(flags);
  options.execution.timeout = flags.Time("deadline", absl::InfiniteDuration());
  options.concurrency = flags.Number("concurrency", 1);
  options.duration = flags.Time("duration", absl::Seconds(5));
  options.warm_up = std::min(options.duration / 5, kMaxWarmUp);
  const std::string rpc = line.Get("rpc").value_or("execute_stream");
  options.in_one_message = rpc == "execute";
  if (rpc != "execute" && rpc != "execute_stream") {
    flags.Fail("rpc", "It is execute or execute_stream.");
  }
  if (options.concurrency == 0) flags.Fail("concurrency", "At least one is needed.");
  const std::optional<size_t> count = CountElements(input);
  if (!count) flags.Fail("shape", "A tensor has at most 4294967295 elements.");
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;

  const auto elements = std::make_shared<const std::vector<std::byte>>(
      RandomElements(input.data_type(), count.value_or(0)));
  options.input = {elements->data(), elements->size(), elements};
  const absl::StatusOr<LoadReport> report = RunLoad(*client, options, CatchInterrupt());
  if (!report.ok()) return Fail(report.status());
  Print(line.Has("json") ? Json(*report) : Text(*report));
  return kDone;
}

}  // namespace

const Verb& BenchVerb() {
  static const Verb* const verb = new Verb{
      .name = "bench",
      .summary = "measures an operator through the server",
      .details =
          "Sends random elements again and again, and compares every answer with the first. The\n"
          "first call and a warm-up of a fifth of the time, at most 1 s, are not counted. Ctrl-C\n"
          "ends it with what was measured so far.\n\n"
          "  opmill bench --operator reduce --function sum --shape 1024,1024 --axes 1 \\\n"
          "               --concurrency 8 --duration 5s\n",
      .flags = WithCommonFlags([] {
        std::vector<Flag> flags = {
            {"operator", "NAME", "argmin, argmax, reduce, top_k or hardmax", OperatorNames()},
            {"concurrency", "N", "executions at a time (1)"},
            {"duration", "TIME", "how long to measure (5s)"},
            {"rpc",
             "NAME",
             "execute_stream: one stream (default); execute: a call each",
             {"execute_stream", "execute"}}};
        for (const Flag& flag : OperatorFlags(TensorFlags())) flags.push_back(flag);
        return flags;
      }()),
      .run = &Bench};
  return *verb;
}

}  // namespace opmill
