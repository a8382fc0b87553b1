#include "server/observe/log.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "kernels/base/errors.h"
#include "kernels/base/json_text.h"
#include "kernels/base/utf8.h"
#include "spdlog/details/os.h"
#include "spdlog/formatter.h"
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

// Writes the time and the level before the text of a LogLine. spdlog's own formatter takes
// twice as long. Called by one thread at a time.
class LineFormatter : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const bool is_json = format_ == LogFormat::kJson;
    const absl::Time time = absl::FromChrono(message.time);
    const absl::Time second = absl::FromUnixSeconds(absl::ToUnixSeconds(time));
    if (second != second_) {
      second_ = second;
      second_text_ = absl::FormatTime("%Y-%m-%dT%H:%M:%S.", second, absl::UTCTimeZone());
    }
    const absl::AlphaNum fraction(
        absl::Dec(absl::ToInt64Microseconds(time - second), absl::kZeroPad6));
    Append(is_json ? "{\"time\":\"" : "", line);
    Append(second_text_, line);
    Append(fraction.Piece(), line);
    Append(is_json ? "Z\",\"level\":\"" : "Z ", line);
    Append(ToView(spdlog::level::to_string_view(message.level)), line);
    Append(is_json ? "\"," : " ", line);
    Append(ToView(message.payload), line);
    Append(is_json ? "}" : "", line);
    Append(spdlog::details::os::default_eol, line);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  static absl::string_view ToView(spdlog::string_view_t text) {
    return absl::string_view(text.data(), text.size());
  }

  static void Append(absl::string_view text, spdlog::memory_buf_t& line) {
    const size_t size = line.size();
    line.resize(size + text.size());
    std::copy(text.begin(), text.end(), line.data() + size);
  }

  const LogFormat format_;
  absl::Time second_ = absl::InfinitePast();
  std::string second_text_;
};

// Control characters and bytes that are not UTF-8 could change a terminal. 0xC2 begins some of
// them.
bool IsPlainWord(absl::string_view value) {
  const auto is_special = [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) || c == ' ' || c == '"' ||
           c == '\\' || c == '=';
  };
  return !value.empty() && absl::c_none_of(value, is_special) && IsUtf8(value) &&
         value.find("\xC2") == absl::string_view::npos;
}

}  // namespace

void StartLog(LogFormat format, LogLevel least, std::FILE* file) {
  g_format = format;
  using Sink = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;
  auto logger = std::make_shared<spdlog::logger>("opmill", std::make_shared<Sink>(file));
  logger->set_formatter(std::make_unique<LineFormatter>(format));
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
  if (enabled_) AddRaw(key, absl::ToInt64Microseconds(value), "_us");
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

void LogLine::AddRaw(absl::string_view key, const absl::AlphaNum& value, absl::string_view unit) {
  const bool is_json = g_format == LogFormat::kJson;
  absl::StrAppend(&text_, is_json ? ",\"" : " ", key, unit, is_json ? "\":" : "=", value);
}

}  // namespace opmill
