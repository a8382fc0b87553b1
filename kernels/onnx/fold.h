// Constants that the engine's operators do not compute, for operator_table.cc. Outputs have their
// size; all inputs that are not left out are constant.
#ifndef OPMILL_KERNELS_ONNX_FOLD_H_
#define OPMILL_KERNELS_ONNX_FOLD_H_

#include <string>
#include <vector>

#include "kernels/onnx/node_reader.h"

namespace opmill::onnx {

using FoldedBytes = std::vector<std::string>;

void FoldCast(NodeReader& node, FoldedBytes& outputs);
void FoldConcat(NodeReader& node, FoldedBytes& outputs);
void FoldGather(NodeReader& node, FoldedBytes& outputs);
void FoldNonZero(NodeReader& node, FoldedBytes& outputs);
void FoldPad(NodeReader& node, FoldedBytes& outputs);
void FoldRange(NodeReader& node, FoldedBytes& outputs);
void FoldScatterNd(NodeReader& node, FoldedBytes& outputs);
void FoldSlice(NodeReader& node, FoldedBytes& outputs);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_FOLD_H_
