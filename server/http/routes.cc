#include "server/http/routes.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/base/excerpt.h"
#include "server/status/error_reason.h"

namespace opmill {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "v2/health/live", "ServerLive", nullptr, AnswerKind::kReadiness, nullptr, false, true},
    {"GET", "v2/health/ready", "ServerReady", nullptr, AnswerKind::kReadiness, nullptr, false,
     true},
    {"GET", "v2", "ServerMetadata", nullptr},
    {"GET", "v2/models/stats", "ModelStatistics", nullptr},
    {"GET", "v2/models/{model}", "ModelMetadata", "name"},
    {"GET", "v2/models/{model}/versions/{version}", "ModelMetadata", "name"},
    {"GET", "v2/models/{model}/ready", "ModelReady", "name", AnswerKind::kReadiness},
    {"GET", "v2/models/{model}/versions/{version}/ready", "ModelReady", "name",
     AnswerKind::kReadiness},
    {"GET", "v2/models/{model}/config", "ModelConfig", "name", AnswerKind::kMessage, "config"},
    {"GET", "v2/models/{model}/versions/{version}/config", "ModelConfig", "name",
     AnswerKind::kMessage, "config"},
    {"GET", "v2/models/{model}/stats", "ModelStatistics", "name"},
    {"GET", "v2/models/{model}/versions/{version}/stats", "ModelStatistics", "name"},
    {"POST", "v2/models/{model}/infer", "ModelInfer", "model_name", AnswerKind::kInfer, nullptr,
     true},
    {"POST", "v2/models/{model}/versions/{version}/infer", "ModelInfer", "model_name",
     AnswerKind::kInfer, nullptr, true},
    {"POST", "v2/repository/index", "RepositoryIndex", nullptr, AnswerKind::kMessage, "models"},
    {"POST", "v2/repository/models/{model}/load", "RepositoryModelLoad", "model_name",
     AnswerKind::kNothing, nullptr, true},
    {"POST", "v2/repository/models/{model}/unload", "RepositoryModelUnload", "model_name",
     AnswerKind::kNothing},
    {"GET", "v2/systemsharedmemory/status", "SystemSharedMemoryStatus", nullptr,
     AnswerKind::kMessage, "regions"},
    {"GET", "v2/systemsharedmemory/region/{region}/status", "SystemSharedMemoryStatus", "name",
     AnswerKind::kMessage, "regions"},
    {"POST", "v2/systemsharedmemory/region/{region}/register", "SystemSharedMemoryRegister", "name",
     AnswerKind::kNothing},
    {"POST", "v2/systemsharedmemory/region/{region}/unregister", "SystemSharedMemoryUnregister",
     "name", AnswerKind::kNothing},
    {"POST", "v2/systemsharedmemory/unregister", "SystemSharedMemoryUnregister", nullptr,
     AnswerKind::kNothing},
    {"GET", "v2/cudasharedmemory/status", "CudaSharedMemoryStatus", nullptr, AnswerKind::kMessage,
     "regions"},
    {"GET", "v2/cudasharedmemory/region/{region}/status", "CudaSharedMemoryStatus", "name",
     AnswerKind::kMessage, "regions"},
    {"POST", "v2/cudasharedmemory/region/{region}/register", "CudaSharedMemoryRegister", "name",
     AnswerKind::kNothing},
    {"POST", "v2/cudasharedmemory/region/{region}/unregister", "CudaSharedMemoryUnregister", "name",
     AnswerKind::kNothing},
    {"POST", "v2/cudasharedmemory/unregister", "CudaSharedMemoryUnregister", nullptr,
     AnswerKind::kNothing},
    {"GET", "v2/trace/setting", "TraceSetting", nullptr},
    {"POST", "v2/trace/setting", "TraceSetting", nullptr},
    {"GET", "v2/models/{model}/trace/setting", "TraceSetting", nullptr},
    {"POST", "v2/models/{model}/trace/setting", "TraceSetting", nullptr},
    {"GET", "v2/logging", "LogSettings", nullptr},
    {"POST", "v2/logging", "LogSettings", nullptr},
};

// "a%20b" is "a b". Nullopt if it is malformed.
std::optional<std::string> WithoutPercents(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
    } else if (i + 2 < text.size() && absl::ascii_isxdigit(text[i + 1]) &&
               absl::ascii_isxdigit(text[i + 2])) {
      decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return decoded;
}

bool Matches(const Route& route, const std::vector<std::string>& segments, RoutedRequest& to) {
  const std::vector<absl::string_view> expected = absl::StrSplit(route.path, '/');
  if (expected.size() != segments.size()) return false;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (expected[i] == "{version}") {
      to.version = segments[i];
    } else if (expected[i].front() == '{') {
      to.name = segments[i];
    } else if (expected[i] != segments[i]) {
      return false;
    }
  }
  to.route = &route;
  return true;
}

}  // namespace

absl::StatusOr<RoutedRequest> FindRoute(absl::string_view verb, absl::string_view target) {
  absl::string_view path = target.substr(0, target.find('?'));
  absl::ConsumePrefix(&path, "/");
  absl::ConsumeSuffix(&path, "/");
  std::vector<std::string> segments;
  for (const absl::string_view each : absl::StrSplit(path, '/')) {
    std::optional<std::string> segment = WithoutPercents(each);
    if (!segment.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The path \"", Excerpt(path), "\" has a % without two hexadecimal digits behind it."));
    }
    segments.push_back(*std::move(segment));
  }
  std::string verbs;
  for (const Route& route : kRoutes) {
    RoutedRequest request;
    if (!Matches(route, segments, request)) continue;
    if (verb == route.verb) return request;
    absl::StrAppend(&verbs, verbs.empty() ? "" : " or ", route.verb);
  }
  if (!verbs.empty()) {
    return absl::UnimplementedError(absl::StrCat("The method of the request is ", Excerpt(verb),
                                                 "; this path takes ", verbs, "."));
  }
  return WithReason(absl::NotFoundError(absl::StrCat("There is no \"", Excerpt(target),
                                                     "\" here; the paths begin with /v2.")),
                    "NOT_SUPPORTED");
}

}  // namespace opmill
