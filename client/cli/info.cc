// opmill info: prints a server's properties, limits and operators.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/connection_flags.h"
#include "client/cli/json.h"
#include "client/cli/text_table.h"
#include "client/cli/verbs.h"
#include "client/names.h"
#include "proto/duration.h"

namespace opmill {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string KindText(v1::DeviceInfo::Kind kind) {
  switch (kind) {
    case v1::DeviceInfo::KIND_HARDWARE:
      return "hardware";
    case v1::DeviceInfo::KIND_SOFTWARE:
      return "software";
    case v1::DeviceInfo::KIND_REFERENCE:
      return "reference";
    case v1::DeviceInfo::KIND_CPU:
      return "cpu";
    default:
      return "unknown";
  }
}

std::string StandbyText(const v1::GetServerInfoResponse& info) {
  if (!info.has_standby()) return "none";
  const v1::DeviceInfo& standby = info.standby();
  return absl::StrCat(standby.adapter(), " (", KindText(standby.kind()), ")",
                      info.on_standby() ? ", in use: the adapter is lost" : "");
}

std::string ServerText(const v1::GetServerInfoResponse& info) {
  const v1::DeviceInfo& device = info.device();
  Rows rows = {
      {"version", info.version()},
      {"adapter", device.adapter()},
      {"kind", KindText(device.kind())},
      {"driver", device.driver()},
      {"shader model", device.shader_model().empty() ? "-" : device.shader_model()},
      {"memory", device.memory_bytes() == 0 ? "unknown" : BytesText(device.memory_bytes())},
      {"unified memory", device.unified_memory() ? "yes" : "no"},
      {"standby", StandbyText(info)},
      {"shared memory", info.shared_memory() ? "on" : "off"},
      {"feature level", NameOf(info.feature_level())}};
  return TextTable(rows, /*align_right=*/false);
}

std::string CallerLimitsText(const v1::CallerLimits& limits) {
  std::vector<std::string> parts;
  if (limits.executions() != 0) parts.push_back(absl::StrCat(limits.executions(), " executions"));
  if (limits.bytes() != 0) parts.push_back(BytesText(limits.bytes()));
  if (limits.rate() != 0) parts.push_back(absl::StrCat(limits.rate(), " executions/s"));
  return parts.empty() ? "none" : absl::StrJoin(parts, ", ");
}

std::string LimitsText(const v1::ServerLimits& limits) {
  return TextTable({{"message to the server", BytesText(limits.max_message_bytes())},
                    {"chunk of an output", BytesText(limits.max_response_chunk_bytes())},
                    {"tensor", BytesText(limits.max_tensor_bytes())},
                    {"bytes in flight", BytesText(limits.max_bytes_in_flight())},
                    {"scratch per operator", BytesText(limits.max_scratch_bytes())},
                    {"server memory", BytesText(limits.memory_limit())},
                    {"executions", absl::StrCat(limits.max_executions())},
                    {"queued executions", absl::StrCat(limits.max_queued())},
                    {"executions per stream", absl::StrCat(limits.max_executions_per_stream())},
                    {"streams", absl::StrCat(limits.max_streams())},
                    {"each caller", CallerLimitsText(limits.caller_limits())},
                    {"connections", absl::StrCat(limits.max_connections())},
                    {"calls per connection", absl::StrCat(limits.max_calls_per_connection())},
                    {"regions of shared memory", absl::StrCat(limits.max_shared_memory_regions())},
                    {"ONNX model", BytesText(limits.max_model_bytes())},
                    {"all models", BytesText(limits.max_total_model_bytes())},
                    {"models of callers", absl::StrCat(limits.max_inline_models(), ", ",
                                                       BytesText(limits.max_inline_model_bytes()))},
                    {"constants of a model", BytesText(limits.max_model_constant_bytes())},
                    {"time to compile a model",
                     limits.has_max_model_compile_time()
                         ? absl::FormatDuration(DecodeDuration(limits.max_model_compile_time()))
                         : "no limit"},
                    {"cached operators", absl::StrCat(limits.operator_cache_capacity())}},
                   /*align_right=*/false);
}

template <typename Values, typename Name>
std::string List(const Values& values, Name name) {
  return absl::StrJoin(values, " ",
                       [&](std::string* out, int value) { absl::StrAppend(out, name(value)); });
}

std::string OperatorsText(const v1::GetServerInfoResponse& info) {
  const auto type_name = [](int type) { return NameOf(static_cast<v1::DataType>(type)); };
  const auto function_name = [](int function) {
    return NameOf(static_cast<v1::ReduceFunction>(function));
  };
  Rows rows = {{"operator", "level", "ranks", "types", "index types"}};
  for (const v1::OperatorSupport& row : info.operators()) {
    std::string name = row.operator_();
    if (row.functions_size() > 0) {
      absl::StrAppend(&name, " ", List(row.functions(), function_name));
    }
    if (!row.condition().empty()) absl::StrAppend(&name, " (", row.condition(), ")");
    const std::string ranks = row.min_rank() == row.max_rank()
                                  ? absl::StrCat(row.min_rank())
                                  : absl::StrCat(row.min_rank(), "-", row.max_rank());
    rows.push_back({name, NameOf(row.feature_level()), ranks, List(row.data_types(), type_name),
                    List(row.index_data_types(), type_name)});
  }
  return TextTable(rows, /*align_right=*/false);
}

int Info(const CommandLine& line) {
  FlagReader flags(line);
  int exit_code = kDone;
  std::optional<Client> client = ConnectOrExplain(flags, exit_code);
  if (!client) return exit_code;
  const absl::StatusOr<v1::GetServerInfoResponse> info = client->GetServerInfo();
  if (!info.ok()) return Fail(info.status());
  if (line.Has("json")) {
    Print(JsonOf(*info) + "\n");
  } else {
    Print(absl::StrCat(ServerText(*info), "\nLimits:\n", LimitsText(info->limits()),
                       "\nOperators, and the feature level from which on they are supported:\n",
                       OperatorsText(*info)));
  }
  return kDone;
}

}  // namespace

const Verb& InfoVerb() {
  static const Verb* const verb = new Verb{
      .name = "info",
      .summary = "prints the server's version, device, limits and operators",
      .details =
          "Version, device, feature level, limits, and the types and ranks of every operator.\n",
      .flags = WithCommonFlags({}),
      .run = &Info};
  return *verb;
}

}  // namespace opmill
