// The command line of opmill-server. Every flag is also read from the environment (--drain_timeout
// from OPMILL_DRAIN_TIMEOUT) and from files (--flagfile); the command line goes before the file,
// the file before the environment.
#ifndef OPMILL_SERVER_CONFIG_FLAGS_H_
#define OPMILL_SERVER_CONFIG_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"
#include "server/host/system_service.h"
#include "server/observe/log.h"

namespace opmill {

struct CommandLine {
  ServerOptions server;
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  std::string log_file;  // UTF-8; empty: stderr
  bool list_adapters = false;
  ServiceAction service = ServiceAction::kNone;
};

// Of main's arguments, in UTF-8 and without the program's name. InvalidArgument with a sentence
// that names the flag. Ends the process on --help, --version and on flags that do not exist, as
// abseil does.
absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> arguments);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_FLAGS_H_
