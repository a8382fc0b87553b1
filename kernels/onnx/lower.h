// The operators of the engine that ONNX's become, for operator_table.cc.
#ifndef OPMILL_KERNELS_ONNX_LOWER_H_
#define OPMILL_KERNELS_ONNX_LOWER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/onnx/lowering.h"

namespace opmill::onnx {

using Views = absl::Span<const View>;

// The attribute `axis` of a node, as a dimension of its first input.
inline uint32_t AxisOf(NodeReader& node, int64_t otherwise) {
  return static_cast<uint32_t>(node.Axis(node.Int("axis", otherwise), node.rank(0)));
}

std::vector<View> LowerElementWise(Lowering& lowering, Views inputs);  // of the row's schema
std::vector<View> LowerBitShift(Lowering& lowering, Views inputs);
std::vector<View> LowerCast(Lowering& lowering, Views inputs);
std::vector<View> LowerClip(Lowering& lowering, Views inputs);
std::vector<View> LowerIsInf(Lowering& lowering, Views inputs);
std::vector<View> LowerMod(Lowering& lowering, Views inputs);

std::vector<View> LowerReduce(Lowering& lowering, Views inputs);
std::vector<View> LowerArg(Lowering& lowering, Views inputs);
std::vector<View> LowerTopK(Lowering& lowering, Views inputs);
std::vector<View> LowerCumSum(Lowering& lowering, Views inputs);

std::vector<View> LowerReshape(Lowering& lowering, Views inputs);  // to the output's sizes
std::vector<View> LowerTranspose(Lowering& lowering, Views inputs);
std::vector<View> LowerExpand(Lowering& lowering, Views inputs);
std::vector<View> LowerSlice(Lowering& lowering, Views inputs);
std::vector<View> LowerSplit(Lowering& lowering, Views inputs);
std::vector<View> LowerTile(Lowering& lowering, Views inputs);

std::vector<View> LowerConcat(Lowering& lowering, Views inputs);
std::vector<View> LowerGather(Lowering& lowering, Views inputs);
std::vector<View> LowerGatherElements(Lowering& lowering, Views inputs);
std::vector<View> LowerGatherNd(Lowering& lowering, Views inputs);
std::vector<View> LowerPad(Lowering& lowering, Views inputs);
std::vector<View> LowerResize(Lowering& lowering, Views inputs);
std::vector<View> LowerScatterElements(Lowering& lowering, Views inputs);

std::vector<View> LowerPool(Lowering& lowering, Views inputs);
std::vector<View> LowerSoftmax(Lowering& lowering, Views inputs);  // and LogSoftmax, Hardmax
std::vector<View> LowerInstanceNormalization(Lowering& lowering, Views inputs);
std::vector<View> LowerLayerNormalization(Lowering& lowering, Views inputs);
std::vector<View> LowerLrn(Lowering& lowering, Views inputs);

std::vector<View> LowerGemm(Lowering& lowering, Views inputs);
std::vector<View> LowerMatMul(Lowering& lowering, Views inputs);
std::vector<View> LowerConv(Lowering& lowering, Views inputs);  // and ConvTranspose

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_LOWER_H_
