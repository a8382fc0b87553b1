// The server's refusals in the words of the command line.
#ifndef OPMILL_CLIENT_CLI_REFUSAL_H_
#define OPMILL_CLIENT_CLI_REFUSAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace opmill {

// The status with flags in place of the request's fields, for Describe of client/error.h:
// "--k: k (9) is larger than ...", not "operator.top_k.k: ...". Fields of an input become its
// name: "x.npy: ..."; without names the sentence stands for itself. What is translated already
// stays as it is.
absl::Status InFlags(const absl::Status& status, absl::Span<const std::string> input_names = {});

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_REFUSAL_H_
