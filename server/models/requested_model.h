// The model that a request names.
#ifndef OPMILL_SERVER_MODELS_REQUESTED_MODEL_H_
#define OPMILL_SERVER_MODELS_REQUESTED_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/descriptor/tensor.h"
#include "kernels/onnx/model.h"
#include "server/models/model.h"

namespace opmill {

struct RequestedModel {
  // The position of an input whose value is part of the program.
  static constexpr uint32_t kInProgram = ~uint32_t{0};

  std::shared_ptr<const Model> model;
  std::shared_ptr<const onnx::ModelProgram> graph;  // null for an operator
  // In the order of the request: its inputs, and which input of the program each of them is.
  std::vector<TensorDesc> inputs = {};
  std::vector<uint32_t> program_inputs = {};

  // Of a batch that the caller sends, for statistics and joined runs.
  uint32_t rows() const {
    if (graph == nullptr || model->max_batch_size == 0) return 1;
    return static_cast<uint32_t>(graph->bindings.sizes.begin()->second[0]);
  }
};

}  // namespace opmill

#endif  // OPMILL_SERVER_MODELS_REQUESTED_MODEL_H_
