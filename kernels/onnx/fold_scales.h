#ifndef OPMILL_KERNELS_ONNX_FOLD_SCALES_H_
#define OPMILL_KERNELS_ONNX_FOLD_SCALES_H_

#include "kernels/onnx/builder.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

// Mul and Add with a constant per channel, after a Conv whose result nothing else reads, become
// part of its weights and bias.
void FoldScales(Graph& graph, const BuildLimits& limits);
// Removes nodes whose results nothing reads, and values that no node has.
void RemoveUnused(Graph& graph);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_FOLD_SCALES_H_
