// Translates errors of the server into terms of the command line.
#ifndef OPMILL_CLIENT_CLI_REFUSAL_H_
#define OPMILL_CLIENT_CLI_REFUSAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace opmill {

// Replaces fields of the request by flags, for Describe() of client/error.h: "--k: k (9) is larger
// than ..." instead of "operator.top_k.k: ...". Fields of an input become its name, "x.npy: ...",
// if names are given. A translated status does not change.
absl::Status InFlags(const absl::Status& status, absl::Span<const std::string> input_names = {});

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_REFUSAL_H_
