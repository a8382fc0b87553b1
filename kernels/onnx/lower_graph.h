// The operators of the engine that compute a graph.
#ifndef OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_
#define OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/lowering.h"

namespace opmill::onnx {

struct LoweredOutput {
  std::string name;
  TensorType type;
  View view;  // packed, at offset 0, of a value that no other output has and that a node computes
};

// The first values are the graph's inputs, in their order; then come its constants.
struct LoweredGraph {
  Lowered lowered;
  size_t input_count = 0;
  std::vector<Bytes> constants;
  std::vector<LoweredOutput> outputs;
};

// Of a graph that Specialize has returned. Unimplemented names all operators for which devices have
// no kernel, and all nodes that a kernel does not take.
absl::StatusOr<LoweredGraph> LowerGraph(const Graph& graph);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_
