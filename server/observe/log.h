// Structured log lines on stderr or in a file: an event and its fields, as text or as one JSON
// object per line.
#ifndef OPMILL_SERVER_OBSERVE_LOG_H_
#define OPMILL_SERVER_OBSERVE_LOG_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace opmill {

enum class LogFormat : uint32_t { kText, kJson };
enum class LogLevel : uint32_t { kDebug, kInfo, kWarning, kError };

// Must be called once, before the first line is logged. `file` must stay open. Lines below `least`
// are dropped.
void StartLog(LogFormat format, LogLevel least, std::FILE* file = stderr);

// A log line, written by its destructor.
//
//   LogLine(LogLevel::kInfo, "serving").Add("address", address).Add("adapter", name);
class LogLine {
 public:
  LogLine(LogLevel level, absl::string_view event);
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  LogLine& Add(absl::string_view key, absl::string_view value);
  LogLine& Add(absl::string_view key, uint64_t value);
  LogLine& Add(absl::string_view key, absl::Duration value);  // as <key>_us
  // Adds "code", and for an error "error" and "field".
  LogLine& Add(const absl::Status& status);

 private:
  void AddRaw(absl::string_view key, const absl::AlphaNum& value, absl::string_view unit = "");

  const LogLevel level_;
  const bool enabled_;
  std::string text_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_OBSERVE_LOG_H_
