// What is done for a model before it is served.
#ifndef OPMILL_SERVER_EXECUTION_PREPARE_MODEL_H_
#define OPMILL_SERVER_EXECUTION_PREPARE_MODEL_H_

#include "absl/status/status.h"
#include "server/execution/executor.h"
#include "server/models/model.h"

namespace opmill {

// An ONNX model whose inputs have one size each is compiled; if that fails, requests get the
// reason. Then the warm-ups of the configuration are computed; if one fails, so does this. Errors
// name the field of the configuration. May take long.
absl::Status PrepareModel(Executor& executor, const Model& model);

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_PREPARE_MODEL_H_
