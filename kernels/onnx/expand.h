// ONNX operators as simpler ONNX operators, for operator_table.cc.
#ifndef OPMILL_KERNELS_ONNX_EXPAND_H_
#define OPMILL_KERNELS_ONNX_EXPAND_H_

#include <optional>
#include <vector>

#include "kernels/onnx/builder.h"
#include "kernels/onnx/node_reader.h"

namespace opmill::onnx {

using Expanded = std::optional<std::vector<ValueId>>;

// Operators that take no time, or are constants.
Expanded ExpandIdentity(NodeReader& node, Builder& build);
Expanded ExpandDropout(NodeReader& node, Builder& build);
Expanded ExpandShape(NodeReader& node, Builder& build);
Expanded ExpandSize(NodeReader& node, Builder& build);
Expanded ExpandConstantOfShape(NodeReader& node, Builder& build);
Expanded ExpandConcat(NodeReader& node, Builder& build);  // leaves out empty inputs
Expanded ExpandGather(NodeReader& node, Builder& build);  // of one element: a Slice

Expanded ExpandCast(NodeReader& node, Builder& build);
Expanded ExpandCastLike(NodeReader& node, Builder& build);
Expanded ExpandClip(NodeReader& node, Builder& build);
Expanded ExpandGelu(NodeReader& node, Builder& build);
Expanded ExpandMean(NodeReader& node, Builder& build);
Expanded ExpandPRelu(NodeReader& node, Builder& build);  // of opset 6
Expanded ExpandPow(NodeReader& node, Builder& build);
Expanded ExpandVariadic(NodeReader& node, Builder& build);  // Max, Min, Sum

Expanded ExpandBatchNormalization(NodeReader& node, Builder& build);
Expanded ExpandLayerNormalization(NodeReader& node, Builder& build);
Expanded ExpandSoftmax(NodeReader& node, Builder& build);  // and LogSoftmax, Hardmax
Expanded ExpandGlobalPool(NodeReader& node, Builder& build);
Expanded ExpandSpaceToDepth(NodeReader& node, Builder& build);
Expanded ExpandDepthToSpace(NodeReader& node, Builder& build);

// Unrolled: the number of steps is known.
Expanded ExpandLstm(NodeReader& node, Builder& build);
Expanded ExpandGru(NodeReader& node, Builder& build);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_EXPAND_H_
