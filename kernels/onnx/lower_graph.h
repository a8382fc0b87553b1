// The program that computes a graph.
#ifndef OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_
#define OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/onnx/graph.h"
#include "kernels/program/program.h"

namespace opmill::onnx {

struct LoweredGraph {
  Program program;                  // validated; its inputs are the graph's, in their order
  std::vector<TensorType> outputs;  // of the graph; the program's are packed, in the same order
  // For each operator of the program, the node of the graph; kCopy for copies of outputs.
  std::vector<uint32_t> nodes = {};
  static constexpr uint32_t kCopy = ~uint32_t{0};
};

// The data of a constant of the graph: a copy, or one that programs share; or why there is none.
using ConstantSource =
    std::function<absl::StatusOr<std::shared_ptr<const ConstantData>>(const Bytes&)>;
std::shared_ptr<const ConstantData> CopyOf(const Bytes& bytes);

// Of a graph that Specialize has returned. Unimplemented names all operators for which devices have
// no kernel, and all nodes that a kernel does not take. Cancelled after a stop of `abandoned`.
absl::StatusOr<LoweredGraph> LowerGraph(const Graph& graph, const ConstantSource& data_of = CopyOf,
                                        const std::stop_token& abandoned = {});

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_LOWER_GRAPH_H_
