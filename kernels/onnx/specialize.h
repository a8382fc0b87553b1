// A graph for inputs of known sizes. Pure functions.
#ifndef OPMILL_KERNELS_ONNX_SPECIALIZE_H_
#define OPMILL_KERNELS_ONNX_SPECIALIZE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kernels/onnx/builder.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

struct InputBindings {
  std::map<std::string, Sizes> sizes;    // of inputs; those with fixed dimensions need none
  std::map<std::string, Tensor> values;  // of inputs that become constants
};

// Inputs whose values the form of the program depends on: the sizes of a result, or the branch of
// an If. Integers only; Specialize needs their values.
std::vector<std::string> FormInputs(const Graph& graph);

// What a node of a file became.
enum class NodeEnd {
  kNodes,     // others, or itself; they may turn out to be unused
  kConstant,  // its outputs are known
  kInput,     // its outputs are inputs of it
  kBranch,    // an If: its branch
};
// By number in the file. Nodes of branches that are not taken have none.
using NodeEnds = absl::flat_hash_map<uint32_t, NodeEnd>;

// Every value has its type; what depends only on sizes and constants is computed; an If is its
// branch; operators that others can express are replaced: LSTM and GRU by their steps,
// normalizations by arithmetic, which becomes part of the weights of a Conv before it. Inputs that
// have a value are no longer inputs. The error names all nodes that cannot be part of a program
// (Unimplemented), or are invalid (InvalidArgument). Cancelled after a stop of
// `limits.abandoned`.
absl::StatusOr<Graph> Specialize(const Graph& graph, const InputBindings& bindings,
                                 const BuildLimits& limits = {}, NodeEnds* ends = nullptr);

// One sentence after the other; of many, the first.
std::string JoinRefusals(const std::vector<std::string>& refusals);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_SPECIALIZE_H_
