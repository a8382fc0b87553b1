// The command line of opmill-server. Every flag is also read from the environment (--drain_timeout
// from OPMILL_DRAIN_TIMEOUT) and from files (--flagfile); the command line goes before the file,
// the file before the environment.
#ifndef OPMILL_SERVER_FLAGS_H_
#define OPMILL_SERVER_FLAGS_H_

#include "absl/status/statusor.h"
#include "server/log.h"
#include "server/options.h"

namespace opmill {

struct CommandLine {
  ServerOptions server;
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  bool list_adapters = false;
};

// InvalidArgument with a sentence that names the flag. Ends the process on --help, --version and on
// flags that do not exist, as abseil does.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv);

}  // namespace opmill

#endif  // OPMILL_SERVER_FLAGS_H_
