// The server's refusals in the words of the command line.
#ifndef OPMILL_CLIENT_CLI_REFUSAL_H_
#define OPMILL_CLIENT_CLI_REFUSAL_H_

#include <string>

#include "absl/status/status.h"

namespace opmill {

// The status with flags in place of the request's fields, for Describe of client/error.h:
// "--k: k (9) is larger than ...", not "operator.top_k.k: ...". Fields of the input become
// `input_name`: "x.npy: ..."; without one the sentence stands for itself. What is translated
// already stays as it is.
absl::Status InFlags(const absl::Status& status, const std::string& input_name = "");

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_REFUSAL_H_
