// Typed access to the flags of a command line. The first error is kept, and reading continues.
#ifndef OPMILL_CLIENT_CLI_COMMAND_LINE_FLAGS_H_
#define OPMILL_CLIENT_CLI_COMMAND_LINE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/command_line.h"

namespace opmill {

// Example:
//
//   FlagReader flags(line);
//   const uint32_t k = flags.RequiredNumber("k");
//   if (!flags.status().ok()) return BadCommandLine(line, flags.status());
class FlagReader {
 public:
  explicit FlagReader(const CommandLine& line) : line_(line) {}

  std::string Required(const std::string& flag);
  uint32_t RequiredNumber(const std::string& flag);
  uint32_t Number(const std::string& flag, uint32_t absent);
  std::vector<int64_t> RequiredIntegers(const std::string& flag);       // "0,-1"
  std::vector<uint32_t> RequiredSizes(const std::string& flag);         // "1024,1024"
  absl::Duration Time(const std::string& flag, absl::Duration absent);  // "5s", "250ms"

  // The value is parsed by a function of client/names.h.
  template <typename Value>
  Value Named(const std::string& flag, absl::StatusOr<Value> (*parse)(absl::string_view),
              Value absent) {
    const std::optional<std::string> text = line_.Get(flag);
    if (!text) return absent;
    const absl::StatusOr<Value> value = parse(*text);
    if (value.ok()) return *value;
    Fail(flag, value.status().message());
    return absent;
  }

  // Records an error that the verb found: of a flag, or of the command line as a whole.
  void Fail(absl::string_view flag, absl::string_view sentence);
  void FailPlain(absl::string_view sentence);

  const CommandLine& line() const { return line_; }
  const absl::Status& status() const { return status_; }

 private:
  template <typename Integer>
  std::vector<Integer> RequiredList(const std::string& flag, absl::string_view expected);

  const CommandLine& line_;
  absl::Status status_;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMMAND_LINE_FLAGS_H_
