// opmill stats: prints the statistics of a server.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/connection_flags.h"
#include "client/cli/json.h"
#include "client/cli/text_table.h"
#include "client/cli/verbs.h"
#include "proto/duration.h"

namespace opmill {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// The mean over successful executions; `sum` includes only these.
std::string Mean(const google::protobuf::Duration& sum, uint64_t count) {
  return count == 0 ? "-" : DurationText(DecodeDuration(sum) / static_cast<double>(count));
}

std::string OperatorsText(const v1::GetStatisticsResponse& statistics) {
  Rows rows = {{"operator", "done", "failed", "cancelled", "in", "out", "upload", "queue",
                "compute", "download"}};
  for (const v1::OperatorStatistics& op : statistics.operators()) {
    const uint64_t count = op.succeeded();
    rows.push_back({op.operator_(), absl::StrCat(op.succeeded()), absl::StrCat(op.failed()),
                    absl::StrCat(op.cancelled()), BytesText(op.input_bytes()),
                    BytesText(op.output_bytes()), Mean(op.upload(), count), Mean(op.queue(), count),
                    Mean(op.compute(), count), Mean(op.download(), count)});
  }
  return rows.size() == 1 ? "No executions yet.\n" : TextTable(rows, /*align_right=*/true);
}

// Empty if none has been used.
std::string ModelsText(const v1::GetStatisticsResponse& statistics) {
  if (statistics.models().empty()) return "";
  Rows rows = {{"model", "version", "done", "failed", "upload", "queue", "compute", "download"}};
  for (const v1::ModelStatistics& model : statistics.models()) {
    const uint64_t count = model.succeeded();
    rows.push_back({model.model(), model.version(), absl::StrCat(count),
                    absl::StrCat(model.failed()), Mean(model.upload(), count),
                    Mean(model.queue(), count), Mean(model.compute(), count),
                    Mean(model.download(), count)});
  }
  return absl::StrCat("\nModels:\n", TextTable(rows, /*align_right=*/true));
}

std::string Text(const v1::GetStatisticsResponse& statistics) {
  const v1::CacheStatistics& cache = statistics.cache();
  const v1::InFlight& flight = statistics.in_flight();
  const v1::DeviceStatistics& device = statistics.device();
  const Rows rows = {
      {"uptime",
       absl::FormatDuration(absl::Trunc(DecodeDuration(statistics.uptime()), absl::Seconds(1)))},
      {"in flight", absl::StrCat(flight.executions(), " executions (", flight.uploading(),
                                 " uploading, ", flight.queued(), " queued, ", flight.running(),
                                 " running, ", flight.streaming(), " streaming), ",
                                 flight.streams(), " streams, ", BytesText(flight.bytes()))},
      {"operator cache",
       absl::StrCat(cache.entries(), " entries, ", cache.hits(), " hits, ", cache.misses(),
                    " misses, ", cache.waits(), " waits, ", cache.evictions(), " evictions, ",
                    cache.failures(), " failures")},
      {"device",
       absl::StrCat(device.runs(), " runs in ", device.submissions(), " submissions, ",
                    device.pipelines_created(), " pipelines (", device.live_kernels(), " live), ",
                    device.shaders_compiled(), " shaders compiled, ", device.resets(), " resets")},
      {"on the standby", absl::StrCat(device.small_runs(), " small runs, ", device.standby_runs(),
                                      " runs of a lost device, ", device.no_memory_runs(),
                                      " runs for which the device had no memory")},
      {"device memory", absl::StrCat(BytesText(device.buffer_bytes_in_use()), " in use, ",
                                     BytesText(device.buffer_bytes_pooled()), " pooled")},
      {"refused requests", absl::StrCat(statistics.refused_requests())}};
  return absl::StrCat(TextTable(rows, /*align_right=*/false), "\nMean times per execution:\n",
                      OperatorsText(statistics), ModelsText(statistics));
}

int Stats(const CommandLine& line) {
  FlagReader flags(line);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<v1::GetStatisticsResponse> statistics = client->GetStatistics();
  if (!statistics.ok()) return Fail(statistics.status());
  Print(line.Has("json") ? JsonOf(*statistics) + "\n" : Text(*statistics));
  return kDone;
}

}  // namespace

const Verb& StatsVerb() {
  static const Verb* const verb = new Verb{
      .name = "stats",
      .summary = "prints what the server has done since it started, and what is in flight",
      .details =
          "Counts, times and bytes of each operator, counts and times of each model; cache, "
          "device, and what is in flight.\n",
      .flags = WithCommonFlags({}),
      .run = &Stats};
  return *verb;
}

}  // namespace opmill
