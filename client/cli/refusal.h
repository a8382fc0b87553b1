// The server's refusals in the words of the command line.
#ifndef OPMILL_CLIENT_CLI_REFUSAL_H_
#define OPMILL_CLIENT_CLI_REFUSAL_H_

#include <string>

#include "absl/status/status.h"

namespace opmill {

// As Describe of client/error.h, but flags stand where the server names fields of its request:
// "--k: k (9) is larger than ...", not "operator.top_k.k: ...". Before what it says of the input
// stands `input_name` where there is one: "x.npy: ...".
std::string Explain(const absl::Status& status, const std::string& input_name = "");

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_REFUSAL_H_
