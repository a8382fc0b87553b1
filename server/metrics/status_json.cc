#include "server/metrics/status_json.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/base/json_text.h"
#include "server/observe/recent_errors.h"

namespace opmill {
namespace {

constexpr size_t kMostListedNameBytes = 100;
constexpr size_t kMostListedReasonBytes = 400;

// Writes an object or a list, whose opening bracket the constructor appends.
class JsonWriter {
 public:
  JsonWriter(std::string& to, char opening) : to_(to), closing_(opening == '{' ? '}' : ']') {
    to_ += opening;
  }
  ~JsonWriter() { to_ += closing_; }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  // The place for the next value of a list.
  std::string& Next() {
    if (!is_first_) to_ += ',';
    is_first_ = false;
    return to_;
  }
  // The place for the value of a member. `name` needs no escapes.
  std::string& Member(absl::string_view name) {
    absl::StrAppend(&Next(), "\"", name, "\":");
    return to_;
  }
  void Add(absl::string_view name, absl::string_view text) { AppendJsonString(Member(name), text); }
  void Add(absl::string_view name, uint64_t number) { absl::StrAppend(&Member(name), number); }

 private:
  std::string& to_;
  const char closing_;
  bool is_first_ = true;
};

const char* NameOfState(ModelState state) {
  switch (state) {
    case ModelState::kReady:
      return "ready";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kUnavailable:
      break;
  }
  return "unavailable";
}

struct ListedModel {
  IndexEntry entry;
  bool is_built_in = false;
  uint64_t succeeded = 0;
  uint64_t failed = 0;
  uint64_t succeeded_ns = 0;  // from begin to end, of all that succeeded

  bool has_problem() const { return entry.state != ModelState::kReady || !entry.reason.empty(); }
};

ListedModel WithRequests(IndexEntry entry, const ModelTable& models) {
  ListedModel listed = {.entry = std::move(entry)};
  listed.is_built_in = models.IsBuiltIn(listed.entry.name);
  if (listed.entry.state != ModelState::kReady) return listed;
  const absl::StatusOr<std::shared_ptr<const Model>> model =
      models.Find(listed.entry.name, listed.entry.version);
  if (!model.ok()) return listed;  // unloaded since it was listed
  inference::ModelStatistics statistics;
  (*model)->statistics->Encode(statistics);
  const inference::InferStatistics& of = statistics.inference_stats();
  listed.succeeded = of.success().count();
  listed.failed = of.fail().count();
  listed.succeeded_ns = of.success().ns();
  return listed;
}

void AddModels(const MetricsSources& from, JsonWriter& to) {
  std::vector<ListedModel> models;
  uint64_t repository_models = 0;
  for (IndexEntry& entry : from.models.Index()) {
    ListedModel listed = WithRequests(std::move(entry), from.models);
    repository_models += listed.is_built_in ? 0 : 1;
    if (listed.is_built_in && listed.succeeded + listed.failed == 0) continue;
    models.push_back(std::move(listed));
  }
  std::stable_sort(models.begin(), models.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.has_problem(), a.succeeded) > std::tuple(b.has_problem(), b.succeeded);
  });
  to.Add("repository_models", repository_models);
  to.Add("sent_models", from.inline_models.counts().models);
  to.Add("models_left_out", models.size() - std::min(models.size(), kMostListedModels));
  models.resize(std::min(models.size(), kMostListedModels));
  JsonWriter list(to.Member("models"), '[');
  for (const ListedModel& model : models) {
    JsonWriter object(list.Next(), '{');
    object.Add("name", ShortenedSentence(model.entry.name, kMostListedNameBytes));
    object.Add("version", ShortenedSentence(model.entry.version, kMostListedNameBytes));
    object.Add("state", NameOfState(model.entry.state));
    object.Add("reason", ShortenedSentence(model.entry.reason, kMostListedReasonBytes));
    object.Member("built_in") += model.is_built_in ? "true" : "false";
    object.Add("succeeded", model.succeeded);
    object.Add("failed", model.failed);
    object.Add("succeeded_ns", model.succeeded_ns);
  }
}

void AddErrors(const RecentErrors& errors, JsonWriter& to) {
  JsonWriter list(to.Member("errors"), '[');
  for (const RecentError& error : errors.All()) {
    JsonWriter object(list.Next(), '{');
    object.Add("time_ms", static_cast<uint64_t>(absl::ToUnixMillis(error.last)));
    object.Add("rpc", error.rpc);
    object.Add("code", absl::StatusCodeToString(error.code));
    object.Add("field", error.field);
    object.Add("sentence", error.sentence);
    object.Add("count", error.count);
  }
}

}  // namespace

std::string StatusJson(const MetricsSources& sources, const Readiness& readiness) {
  std::string json;
  {
    JsonWriter to(json, '{');
    to.Add("time_ms", static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())));
    to.Add("uptime_ms",
           static_cast<uint64_t>(absl::ToInt64Milliseconds(sources.statistics.uptime())));
    to.Add("state", readiness.text);
    to.Member("ready") += readiness.is_ready ? "true" : "false";
    if (const DeviceInfo* const standby = sources.device.standby(); standby != nullptr) {
      JsonWriter object(to.Member("standby"), '{');
      object.Add("name", standby->name);
      object.Add("driver", standby->driver);
    }
    AddModels(sources, to);
    AddErrors(sources.statistics.recent_errors(), to);
  }
  json += '\n';
  return json;
}

}  // namespace opmill
