// The program that computes a graph.
#ifndef OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_
#define OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/onnx/graph.h"
#include "kernels/program/program.h"

namespace opmill::onnx {

// An input or output of the model. Its tensor is packed; sizes are ONNX's, so there may be none.
struct ModelTensor {
  std::string name;
  TensorType type;
};

struct ModelProgram {
  Program program;                   // validated
  std::vector<ModelTensor> inputs;   // of the program, in its order, which is the model's
  std::vector<ModelTensor> outputs;  // of the program, in its order, which may be another
};

// Of a graph that Specialize has returned. Unimplemented names all operators for which devices have
// no kernel, and all nodes that a kernel does not take.
absl::StatusOr<ModelProgram> LowerGraph(const Graph& graph);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_
