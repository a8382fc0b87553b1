#include "server/metrics/metrics_endpoint.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/metrics/page_files.h"

namespace opmill {
namespace {

// Creates the text anew at most a fifth of the time, so that a flood of requests for it, which all
// have the endpoint's thread in common, does not delay probes. Not thread-safe.
class RecentText {
 public:
  explicit RecentText(std::function<std::string()> create) : create_(std::move(create)) {}

  const std::string& Get() {
    const Clock::time_point now = Clock::now();
    if (now < valid_until_) return text_;
    text_ = create_();
    const Clock::time_point created = Clock::now();
    valid_until_ = created + 4 * (created - now);
    return text_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::function<std::string()> create_;
  std::string text_;
  Clock::time_point valid_until_ = Clock::time_point::min();
};

std::string TypeOfFile(absl::string_view path) {
  constexpr std::pair<absl::string_view, absl::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".svg", "image/svg+xml"}};
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(path, ending)) return std::string(type);
  }
  return "application/octet-stream";
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> ListenForMetrics(
    const std::string& address, const MetricsSources& sources,
    const std::function<Readiness()>& readiness) {
  using Answer = HttpEndpoint::Answer;
  HttpEndpoint::Pages pages;
  pages["/healthz"] = [] { return Answer{.body = "alive\n"}; };
  pages["/readyz"] = [readiness] {
    const Readiness now = readiness();
    return Answer{.status = now.is_ready ? 200 : 503, .body = now.text + "\n"};
  };
  const auto metrics = std::make_shared<RecentText>(
      [sources, readiness] { return MetricsText(sources, readiness().is_ready); });
  pages["/metrics"] = [metrics] {
    return Answer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = metrics->Get()};
  };
  const auto status = std::make_shared<RecentText>(
      [sources, readiness] { return StatusJson(sources, readiness()); });
  pages["/status.json"] = [status] {
    return Answer{.content_type = "application/json", .body = status->Get()};
  };
  for (const EmbeddedFile& file : PageFiles()) {
    pages[file.path == "index.html" ? "/" : absl::StrCat("/", file.path)] = [file] {
      return Answer{.content_type = TypeOfFile(file.path), .body = std::string(file.text)};
    };
  }
  return HttpEndpoint::Listen(address, std::move(pages));
}

}  // namespace opmill
