// The limits on each caller as text: executions=64,bytes=2GiB,rate=1000/s.
#ifndef OPMILL_SERVER_CONFIG_CALLER_LIMITS_H_
#define OPMILL_SERVER_CONFIG_CALLER_LIMITS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/config/options.h"

namespace opmill {

// Any of the three limits, in any order, separated by commas. An empty text sets no limit. "/s" may
// be omitted.
bool AbslParseFlag(absl::string_view text, CallerLimits* limits, std::string* error);
std::string AbslUnparseFlag(const CallerLimits& limits);

}  // namespace opmill

#endif  // OPMILL_SERVER_CONFIG_CALLER_LIMITS_H_
