// What every verb that calls a server does: read the common flags, and connect.
#ifndef OPMILL_CLIENT_CLI_COMMON_H_
#define OPMILL_CLIENT_CLI_COMMON_H_

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

// What every verb takes, and its own in front of that.
std::vector<Flag> WithCommonFlags(std::vector<Flag> own);

// --feature_level.
std::optional<v1::FeatureLevel> ReadFeatureLevel(FlagReader& flags);

// A server as the common flags name it, and how to call it.
struct Endpoint {
  std::string server;  // --server, else OPMILL_SERVER, else where servers listen by default
  ClientOptions options;
};

// Reads the common flags. What is wrong with them is printed, and its exit code left in
// `exit_code`.
std::optional<Endpoint> ReadEndpoint(FlagReader& flags, int& exit_code);
// Prints why Client::Connect failed, and returns the exit code that goes with it.
int ExplainConnectFailure(const CommandLine& line, const Endpoint& endpoint,
                          const absl::Status& status);
// Both, and the connection in between.
std::optional<Client> ConnectOrExplain(FlagReader& flags, int& exit_code);

// UTF-8, as everywhere in this program.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_COMMON_H_
