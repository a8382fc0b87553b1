#ifndef OPMILL_KERNELS_ONNX_ONE_HOT_H_
#define OPMILL_KERNELS_ONNX_ONE_HOT_H_

#include "kernels/onnx/builder.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

// The product of a one-hot encoding, which is Equal of indices and 0, 1, 2, ..., and a table is a
// Gather of the table's rows. Element-wise functions of these rows and constants are computed for
// each row of the table, before rows are gathered.
void GatherOneHot(Graph& graph, const BuildLimits& limits);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_ONE_HOT_H_
