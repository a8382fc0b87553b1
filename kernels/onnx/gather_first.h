#ifndef OPMILL_KERNELS_ONNX_GATHER_FIRST_H_
#define OPMILL_KERNELS_ONNX_GATHER_FIRST_H_

#include "kernels/onnx/builder.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

// A Gather of rows from a table that Cast and Mul compute from constants, such as weights in INT8
// with their scale, gathers from the constants, so that only these rows are computed.
void GatherFirst(Graph& graph, const BuildLimits& limits);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_GATHER_FIRST_H_
