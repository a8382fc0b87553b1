// The flags that all verbs with a server share, and the connection to that server.
#ifndef OPMILL_CLIENT_CLI_CONNECTION_FLAGS_H_
#define OPMILL_CLIENT_CLI_CONNECTION_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/command_line.h"
#include "client/cli/errors.h"
#include "client/cli/flag_reader.h"
#include "client/client.h"

namespace opmill {

// Appends the common flags to a verb's own flags.
std::vector<Flag> WithCommonFlags(std::vector<Flag> own);

// --feature_level.
std::optional<v1::FeatureLevel> ReadFeatureLevel(FlagReader& flags);

// The server that the common flags name, and the options for calling it.
struct Endpoint {
  std::string server;  // --server, else OPMILL_SERVER, else the default address
  ClientOptions options;
};

// Reads the common flags. On failure prints the error and sets `exit_code`.
std::optional<Endpoint> ReadEndpoint(FlagReader& flags, int& exit_code);
// Prints why Client::Connect failed, and returns the exit code.
int ExplainConnectFailure(const CommandLine& line, const Endpoint& endpoint,
                          const absl::Status& status);
// Reads the common flags and connects. On failure prints the error and sets `exit_code`.
std::optional<Client> ConnectOrExplain(FlagReader& flags, int& exit_code);

// `path` is UTF-8.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_CONNECTION_FLAGS_H_
