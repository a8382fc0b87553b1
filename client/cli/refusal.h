// Translates the server's errors to the terms of the command line.
#ifndef OPMILL_CLIENT_CLI_REFUSAL_H_
#define OPMILL_CLIENT_CLI_REFUSAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace opmill {

// Replaces the request's fields in the status by flags, for Describe of client/error.h: "--k: k (9)
// is larger than ..." instead of "operator.top_k.k: ...". Fields of an input become its name:
// "x.npy: ..."; without names the prefix is dropped. A translated status is returned unchanged.
absl::Status InFlags(const absl::Status& status, absl::Span<const std::string> input_names = {});

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_REFUSAL_H_
