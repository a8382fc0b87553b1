// What all verbs that call a server share: the common flags, and connecting.
#ifndef OPMILL_CLIENT_CLI_CONNECTION_FLAGS_H_
#define OPMILL_CLIENT_CLI_CONNECTION_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/command_line.h"
#include "client/cli/command_line_flags.h"
#include "client/cli/error_report.h"
#include "client/client.h"

namespace opmill {

// `own`, followed by the flags of every verb.
std::vector<Flag> WithCommonFlags(std::vector<Flag> own);

// --priority; 0 if it is not given.
int32_t ReadPriority(FlagReader& flags);

// --feature_level.
std::optional<v1::FeatureLevel> ReadFeatureLevel(FlagReader& flags);

// The server that the common flags name, and the options of calls.
struct Endpoint {
  std::string server;  // --server, else OPMILL_SERVER, else the default address
  ClientOptions options;
};

// Reads the common flags. If they are invalid, prints the error and sets `exit_code`.
std::optional<Endpoint> ReadEndpoint(FlagReader& flags, int& exit_code);
// Prints why Client::Connect failed, and returns the exit code.
int ExplainConnectFailure(const CommandLine& line, const Endpoint& endpoint,
                          const absl::Status& status);
// Reads the common flags and connects; prints an error and sets `exit_code` if that fails.
std::optional<Client> ConnectOrExplain(FlagReader& flags, int& exit_code);

// The content of a file. `path` is UTF-8.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_CONNECTION_FLAGS_H_
