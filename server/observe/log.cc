#include "server/observe/log.h"

#include <memory>
#include <optional>

#include "kernels/base/errors.h"
#include "kernels/base/json_text.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace opmill {
namespace {

LogFormat g_format = LogFormat::kText;

constexpr size_t kUsualBytes = 512;  // the line of an execution has about 400

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

bool IsPlainWord(absl::string_view value) {
  return !value.empty() && value.find_first_of(" \t\r\n\"\\=") == absl::string_view::npos;
}

}  // namespace

void StartLog(LogFormat format, LogLevel least, std::FILE* file) {
  g_format = format;
  using Sink = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;
  auto logger = std::make_shared<spdlog::logger>("opmill", std::make_shared<Sink>(file));
  // Both patterns end before the fields, which LogLine writes.
  logger->set_pattern(format == LogFormat::kJson
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})"
                          : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
                      spdlog::pattern_time_type::utc);
  logger->set_level(ToSpdlog(least));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

LogLine::LogLine(LogLevel level, absl::string_view event)
    : level_(level), enabled_(spdlog::should_log(ToSpdlog(level))) {
  if (!enabled_) return;
  text_.reserve(kUsualBytes);
  if (g_format == LogFormat::kText) {
    absl::StrAppend(&text_, event);
  } else {
    absl::StrAppend(&text_, "\"event\":");
    AppendJsonString(text_, event);
  }
}

LogLine::~LogLine() {
  if (enabled_) spdlog::default_logger_raw()->log(ToSpdlog(level_), text_);
}

LogLine& LogLine::Add(absl::string_view key, absl::string_view value) {
  if (!enabled_) return *this;
  if (g_format == LogFormat::kText && IsPlainWord(value)) {
    AddRaw(key, value);
  } else {
    AddRaw(key, "");
    AppendJsonString(text_, value);
  }
  return *this;
}

LogLine& LogLine::Add(absl::string_view key, uint64_t value) {
  if (enabled_) AddRaw(key, value);
  return *this;
}

LogLine& LogLine::Add(absl::string_view key, absl::Duration value) {
  if (enabled_) AddRaw(absl::StrCat(key, "_us"), absl::ToInt64Microseconds(value));
  return *this;
}

LogLine& LogLine::Add(const absl::Status& status) {
  if (!enabled_) return *this;
  Add("code", absl::StatusCodeToString(status.code()));
  if (status.ok()) return *this;
  Add("error", status.message());
  if (const std::optional<std::string> field = FieldOf(status)) Add("field", *field);
  return *this;
}

void LogLine::AddRaw(absl::string_view key, const absl::AlphaNum& value) {
  if (g_format == LogFormat::kJson) {
    absl::StrAppend(&text_, ",\"", key, "\":", value);
  } else {
    absl::StrAppend(&text_, " ", key, "=", value);
  }
}

}  // namespace opmill
