// What every verb does: connect, and say what went wrong.
#ifndef OPMILL_CLIENT_CLI_COMMON_H_
#define OPMILL_CLIENT_CLI_COMMON_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/command_line.h"
#include "client/cli/flag_reader.h"
#include "client/client.h"

namespace opmill {

// What every verb takes, and its own in front of that.
std::vector<Flag> WithCommonFlags(std::vector<Flag> own);

// --server, else OPMILL_SERVER, else the address that servers listen at by default.
std::string ServerOf(const CommandLine& line);

// --feature_level.
std::optional<v1::FeatureLevel> ReadFeatureLevel(FlagReader& flags);

// Reads the common flags and connects. What keeps it from that is printed, and its exit code left
// in `exit_code`.
std::optional<Client> ConnectOrExplain(FlagReader& flags, int& exit_code);

// Print to stderr, and return the exit code that goes with it.
int Fail(const absl::Status& status);
int BadCommandLine(const CommandLine& line, const absl::Status& status);

void Print(absl::string_view text);

// UTF-8, as everywhere in this program.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMMON_H_
