// Products and convolutions.
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/onnx/infer.h"
#include "kernels/onnx/lower.h"

namespace opmill::onnx {
namespace {

std::vector<uint32_t> Unsigned(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

// The matrices of all batches; a vector is a row of the first factor, or a column of the second.
View AsMatrices(Lowering& lowering, View view, Sizes batches, bool is_first) {
  Sizes sizes(view.tensor.sizes.begin(), view.tensor.sizes.end());
  if (sizes.size() == 1) sizes.insert(is_first ? sizes.begin() : sizes.end(), 1);
  view = lowering.Reshape(view, sizes);
  batches.insert(batches.end(), sizes.end() - 2, sizes.end());
  view = Broadcast(std::move(view), DescSizes(batches));
  if (batches.size() <= 4) return view;  // what gemm takes
  const auto count =
      static_cast<int64_t>(ElementCount(Sizes(batches.begin(), batches.end() - 2)).value_or(0));
  return lowering.Reshape(view, {count, batches[batches.size() - 2], batches.back()});
}

}  // namespace

std::vector<View> LowerGemm(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  std::vector<View> tensors = {inputs[0], inputs[1]};
  if (node.has(2)) tensors.push_back(Broadcast(inputs[2], DescSizes(node.output(0).sizes)));
  return {lowering.EmitNamed("gemm", tensors,
                             {{"trans_a", static_cast<uint32_t>(node.Int("transA", 0) != 0)},
                              {"trans_b", static_cast<uint32_t>(node.Int("transB", 0) != 0)},
                              {"alpha", node.Float("alpha", 1)},
                              {"beta", node.Float("beta", 1)}})};
}

std::vector<View> LowerMatMul(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const TensorType& type = node.output(0);
  const size_t matrix_rank = (node.rank(0) > 1 ? 1 : 0) + (node.rank(1) > 1 ? 1 : 0);
  const Sizes batches(type.sizes.begin(), type.sizes.end() - static_cast<ptrdiff_t>(matrix_rank));
  std::vector<View> tensors;
  for (size_t i = 0; i < 2; ++i) {
    tensors.push_back(AsMatrices(lowering, inputs[i], batches, i == 0));
  }
  const View product = lowering.EmitNamed("gemm", tensors);
  return {node.ok() ? lowering.Reshape(product, type.sizes) : product};
}

std::vector<View> LowerConv(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const bool is_transposed = node.node().op == "ConvTranspose";
  const Sizes filter = node.sizes(1);
  const Window window = WindowOf(node, Sizes(filter.begin() + 2, filter.end()));
  std::vector<View> tensors = {inputs[0], inputs[1]};
  if (node.has(2)) {
    Sizes bias(filter.size(), 1);
    bias[1] = node.output(0).sizes[1];
    tensors.push_back(lowering.Reshape(inputs[2], bias));
  }
  return {lowering.EmitNamed("convolution", tensors,
                             {{"mode", uint32_t{1}},  // CROSS_CORRELATION
                              {"direction", static_cast<uint32_t>(is_transposed)},
                              {"strides", Unsigned(window.strides)},
                              {"dilations", Unsigned(window.dilations)},
                              {"start_padding", Unsigned(window.start_padding)},
                              {"end_padding", Unsigned(window.end_padding)},
                              {"output_padding", Unsigned(node.Ints("output_padding"))},
                              {"group_count", static_cast<uint32_t>(node.Int("group", 1))}})};
}

}  // namespace opmill::onnx
