// The types of the outputs of ONNX's operators, for operator_table.cc.
#ifndef OPMILL_KERNELS_ONNX_INFER_H_
#define OPMILL_KERNELS_ONNX_INFER_H_

#include <vector>

#include "kernels/onnx/node_reader.h"

namespace opmill::onnx {

using Types = std::vector<TensorType>;

// Element by element.
void InferSame(NodeReader& node, Types& outputs);     // the type of the first input
void InferTruth(NodeReader& node, Types& outputs);    // its sizes, BOOL
void InferBinary(NodeReader& node, Types& outputs);   // broadcast inputs of one type
void InferCompare(NodeReader& node, Types& outputs);  // the same, BOOL
void InferWhere(NodeReader& node, Types& outputs);
void InferCast(NodeReader& node, Types& outputs);

void InferTranspose(NodeReader& node, Types& outputs);
void InferReshape(NodeReader& node, Types& outputs);
void InferFlatten(NodeReader& node, Types& outputs);
void InferSqueeze(NodeReader& node, Types& outputs);
void InferUnsqueeze(NodeReader& node, Types& outputs);
void InferExpand(NodeReader& node, Types& outputs);
void InferSlice(NodeReader& node, Types& outputs);
void InferSplit(NodeReader& node, Types& outputs);
void InferTile(NodeReader& node, Types& outputs);
void InferConcat(NodeReader& node, Types& outputs);
void InferPad(NodeReader& node, Types& outputs);
void InferGather(NodeReader& node, Types& outputs);
void InferGatherElements(NodeReader& node, Types& outputs);
void InferGatherNd(NodeReader& node, Types& outputs);
void InferScatter(NodeReader& node, Types& outputs);
void InferRange(NodeReader& node, Types& outputs);
void InferNonZero(NodeReader& node, Types& outputs);
void InferResize(NodeReader& node, Types& outputs);

void InferReduce(NodeReader& node, Types& outputs);
void InferArg(NodeReader& node, Types& outputs);
void InferTopK(NodeReader& node, Types& outputs);
void InferGemm(NodeReader& node, Types& outputs);
void InferMatMul(NodeReader& node, Types& outputs);
void InferConv(NodeReader& node, Types& outputs);
void InferConvTranspose(NodeReader& node, Types& outputs);
void InferPool(NodeReader& node, Types& outputs);
void InferAlongAxis(NodeReader& node, Types& outputs);  // the type of the first input
void InferInstanceNormalization(NodeReader& node, Types& outputs);
void InferLayerNormalization(NodeReader& node, Types& outputs);
void InferLrn(NodeReader& node, Types& outputs);

// The dimensions that a reduction works over.
std::vector<size_t> ReducedAxes(NodeReader& node);

struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t size = 0;
};
// Of each dimension.
std::vector<SliceRange> SliceRanges(NodeReader& node);
std::vector<int64_t> SplitSizes(NodeReader& node, size_t& axis);

// The window of a convolution or pooling, per spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, start_padding, end_padding;
};
// `kernel` are its sizes, if the attribute does not give them.
Window WindowOf(NodeReader& node, std::vector<int64_t> kernel);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_INFER_H_
