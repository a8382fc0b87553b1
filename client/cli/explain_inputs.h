// The inputs of `opmill explain`: sizes, and elements where the form of a model depends on them.
#ifndef OPMILL_CLIENT_CLI_EXPLAIN_INPUTS_H_
#define OPMILL_CLIENT_CLI_EXPLAIN_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "opmill/v1/model.pb.h"

namespace opmill {

// Adds all inputs of the model to `to`. `words` are NAME=SIZES ("x=1,3,320,320") and NAME:=NUMBERS
// ("sr:=16000"); what the model fixes may be left out.
absl::Status AddInputs(const v1::ModelInfo& model, const std::vector<std::string>& words,
                       v1::ModelDesc& to);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_EXPLAIN_INPUTS_H_
