#ifndef OPMILL_KERNELS_ONNX_EVALUATE_H_
#define OPMILL_KERNELS_ONNX_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/onnx/graph.h"
#include "kernels/onnx/operator_table.h"

namespace opmill::onnx {

// The outputs of a node whose inputs are constant and whose outputs have types, computed by the
// reference operators. nullopt if they cannot be computed, or if the node only makes views of more
// than `most_view_bytes`.
std::optional<std::vector<Bytes>> Evaluate(const OperatorRow& row, const Node& node,
                                           const Values& values, uint64_t most_view_bytes);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_EVALUATE_H_
