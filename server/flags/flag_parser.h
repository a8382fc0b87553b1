// Sets flags that abseil declares, from the environment and the command line. Unlike abseil's own
// parser it returns errors, with suggestions, and its help page lists no flags of libraries.
#ifndef OPMILL_SERVER_FLAGS_FLAG_PARSER_H_
#define OPMILL_SERVER_FLAGS_FLAG_PARSER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace opmill {

using FlagsByName = std::map<std::string, absl::CommandLineFlag*, std::less<>>;

// The flag drain_timeout from OPMILL_DRAIN_TIMEOUT, and so on.
absl::Status SetFromEnvironment(const FlagsByName& flags);

// A sentence for each variable that begins with OPMILL_, and sets no flag of the server and nothing
// of the command line `opmill`. Values, which may be secret, are not shown.
std::vector<std::string> UnknownVariables(const FlagsByName& flags);

enum class PageRequest { kNone, kHelpPage, kVersionPage };

// --help, -h, --version or -v, whatever else is there.
PageRequest FindPageRequest(const std::vector<std::string>& arguments);

// --name=value, --name value, and for booleans --name and --noname, with one dash or two. The last
// value of a flag applies.
absl::Status SetFromArguments(const FlagsByName& flags, const std::vector<std::string>& arguments);

// The descriptions of the flags.
std::string FlagTable(const FlagsByName& flags);

}  // namespace opmill

#endif  // OPMILL_SERVER_FLAGS_FLAG_PARSER_H_
