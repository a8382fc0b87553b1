// What the passes make of each node of a file.
#ifndef OPMILL_KERNELS_ONNX_EXPLAIN_H_
#define OPMILL_KERNELS_ONNX_EXPLAIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/onnx/builder.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/lower_graph.h"
#include "kernels/onnx/specialize.h"

namespace opmill::onnx {

enum class NodeFate {
  kUnused,    // nothing reads its results, or its branch is not taken
  kConstant,  // computed when the program is made; also an If, whose branch is known
  kView,      // moves nothing
  kComputed,  // by operators of the program
};

// Names are those of the graph, which must outlive it.
struct ExplainedNode {
  absl::string_view name;
  absl::string_view op;
  NodeFate fate = NodeFate::kUnused;
  std::vector<uint32_t> operators;  // of the program, ascending; empty unless kComputed
};

struct Explanation {
  std::vector<ExplainedNode> nodes;  // of the file, those of branches after their If
  // Of the program before element-wise operators are joined: operators, and what they would move.
  size_t unfused_operators = 0;
  uint64_t unfused_bytes = 0;
};

// Of the program that FuseChains makes of the graph. Errors are those of Specialize and LowerGraph.
absl::StatusOr<Explanation> Explain(const Graph& graph, const InputBindings& bindings,
                                    const BuildLimits& limits = {},
                                    const ConstantSource& data_of = CopyOf);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_EXPLAIN_H_
