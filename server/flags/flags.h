// The command line of opmill-server. Every flag can also be set in the environment (--drain_timeout
// as OPMILL_DRAIN_TIMEOUT) and in files (--flagfile). The command line overrides files, and files
// override the environment.
#ifndef OPMILL_SERVER_FLAGS_FLAGS_H_
#define OPMILL_SERVER_FLAGS_FLAGS_H_

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
  std::string log_file;                        // UTF-8; empty: stderr
  std::vector<std::string> unknown_variables;  // sentences for the log
  std::string page;                            // not empty: to be printed, instead of serving
  bool list_adapters = false;
  ServiceAction service = ServiceAction::kNone;
};

// `arguments` are main's in UTF-8, without the program's name. InvalidArgument names the flag.
absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> arguments);

}  // namespace opmill

#endif  // OPMILL_SERVER_FLAGS_FLAGS_H_
