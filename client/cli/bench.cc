// opmill bench: measures an operator on the server.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/connection_flags.h"
#include "client/cli/interrupt.h"
#include "client/cli/load_generator.h"
#include "client/cli/load_report.h"
#include "client/cli/operator_flags.h"
#include "client/cli/random_elements.h"
#include "client/cli/verbs.h"
#include "client/names.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

constexpr absl::Duration kMaxWarmUp = absl::Seconds(1);
// More than any server accepts. With --rpc execute, each takes a thread.
constexpr int64_t kMaxConcurrency = 10'000;

std::optional<size_t> CountElements(const TensorDesc& desc) {
  uint64_t count = 1;
  for (const uint32_t size : desc.sizes) {
    count *= size;
    if (count > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  }
  return static_cast<size_t>(count);
}

std::string TitleOf(const CommandLine& line, const TensorDesc& input) {
  const std::string function = line.Get("function").value_or("");
  return absl::StrCat(line.Get("operator").value_or(""), function.empty() ? "" : " ", function,
                      ", ", NameOf(static_cast<v1::DataType>(input.data_type)), " (",
                      absl::StrJoin(input.sizes, ", "), ")");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(PathOf(path), std::ios::binary);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnknownError(absl::StrCat(path, " cannot be written."));
}

// The number of concurrent executions, for each run.
std::vector<uint32_t> ReadConcurrency(FlagReader& flags) {
  if (!flags.line().Has("concurrency")) return {1};
  std::vector<uint32_t> values;
  for (const int64_t value : flags.RequiredIntegers("concurrency")) {
    if (value < 1 || value > kMaxConcurrency) {
      flags.Fail("concurrency",
                 absl::StrCat(value, " is not a number from 1 to ", kMaxConcurrency, "."));
    }
    values.push_back(static_cast<uint32_t>(value));
  }
  return values;
}

std::string ReportsJson(const std::vector<LoadReport>& reports, bool is_one) {
  if (is_one) return ReportJson(reports[0]) + "\n";
  const auto append = [](std::string* out, const LoadReport& report) {
    out->append(ReportJson(report));
  };
  return absl::StrCat("{\"runs\":[", absl::StrJoin(reports, ",", append), "]}\n");
}

int Bench(const CommandLine& line) {
  FlagReader flags(line);
  const TensorDesc input = ReadTensor(flags);
  const std::string op = flags.Required("operator");
  ExecutionLoad load;
  load.desc = ReadOperator(op, input, flags);
  load.options.feature_level = ReadFeatureLevel(flags);
  load.options.timeout = flags.Time("deadline", absl::InfiniteDuration());
  load.options.priority = ReadPriority(flags);
  const std::vector<uint32_t> concurrency = ReadConcurrency(flags);
  load.plan.duration = flags.Time("duration", absl::Seconds(5));
  load.plan.warm_up = std::min(load.plan.duration / 5, kMaxWarmUp);
  const std::string rpc = line.Get("rpc").value_or("execute_stream");
  load.in_one_message = rpc == "execute";
  if (rpc != "execute" && rpc != "execute_stream") {
    flags.Fail("rpc", "It must be execute or execute_stream.");
  }
  const std::optional<size_t> count = CountElements(input);
  if (!count) flags.Fail("shape", "A tensor has at most 4294967295 elements.");
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;

  for (size_t i = 0; i < FindOperatorName(op)->schema->inputs.size(); ++i) {
    const auto elements = std::make_shared<const std::vector<std::byte>>(RandomElements(
        static_cast<v1::DataType>(input.data_type), count.value_or(0), /*seed=*/i + 1));
    load.inputs.push_back({elements->data(), elements->size(), elements});
  }
  const std::atomic<bool>& interrupted = CatchInterrupt();
  std::vector<LoadReport> reports;
  absl::Status status;
  for (const uint32_t executions : concurrency) {
    load.plan.concurrency = executions;
    absl::StatusOr<LoadReport> report = RunLoad(*client, load, interrupted);
    status = report.status();
    if (!status.ok()) break;
    reports.push_back(*std::move(report));
    if (interrupted.load()) break;
  }
  if (reports.empty()) return Fail(status);
  // Prints what was measured even if a later run failed.
  Print(line.Has("json")          ? ReportsJson(reports, concurrency.size() == 1)
        : concurrency.size() == 1 ? ReportText(reports[0])
                                  : ReportTable(reports));
  if (const std::optional<std::string> chart = line.Get("chart")) {
    status.Update(WriteFile(*chart, ReportChart(TitleOf(line, input), reports)));
  }
  return status.ok() ? kDone : Fail(status);
}

}  // namespace

const Verb& BenchVerb() {
  static const Verb* const verb = new Verb{
      .name = "bench",
      .summary = "measures an operator on the server",
      .details =
          "Sends random inputs repeatedly, and compares every result with the first one. The "
          "first\n"
          "call and a warm-up of a fifth of the duration, at most 1 s, are not counted. Ctrl-C "
          "stops\n"
          "the measurement and prints its results so far.\n\n"
          "  opmill bench --operator reduce --function sum --shape 1024,1024 --axes 1 \\\n"
          "               --concurrency 8 --duration 5s\n\n"
          "With --concurrency 1,2,4,8 it measures one after the other and prints a table.\n",
      .flags = WithCommonFlags([] {
        std::vector<Flag> flags = {
            {"operator", "NAME", "an operator, as for `opmill run`", OperatorNames()},
            {"concurrency", "LIST", "executions at a time (default 1); 1,2,4,8 measures each"},
            {"duration", "TIME", "how long to measure each (default 5s)"},
            {"chart", "FILE", "write a chart of latency and rate by concurrency (SVG)"},
            {"rpc",
             "NAME",
             "execute_stream: one stream for all (default); execute: a call for each",
             {"execute_stream", "execute"}},
            {"priority", "NUMBER", "of your executions that wait, the greatest runs first; 0"}};
        for (const Flag& flag : OperatorFlags(TensorFlags())) flags.push_back(flag);
        return flags;
      }()),
      .run = &Bench};
  return *verb;
}

}  // namespace opmill
