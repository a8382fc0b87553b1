// What is done for a model before it is served.
#ifndef OPMILL_SERVER_EXECUTION_PREPARE_MODEL_H_
#define OPMILL_SERVER_EXECUTION_PREPARE_MODEL_H_

#include <memory>

#include "absl/status/status.h"
#include "server/execution/executor.h"
#include "server/models/model.h"

namespace opmill {

// An ONNX model whose inputs have one size each is compiled. If that takes longer than it may, this
// fails; if it fails for another reason, requests get that. Then the warm-ups of the configuration
// are computed; if one fails, so does this. Errors name the field of the configuration. May take
// long; ends soon after Executor::Drain, with Unavailable.
absl::Status PrepareModel(Executor& executor, const std::shared_ptr<const Model>& model);

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_PREPARE_MODEL_H_
