// Pooling, softmax and normalizations.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/onnx/infer.h"
#include "kernels/onnx/lower.h"
#include "kernels/onnx/operator_table.h"

namespace opmill::onnx {
namespace {

// A list for the spatial dimensions, of which the engine has at least two.
std::vector<uint32_t> Spatial(const std::vector<int64_t>& values, uint32_t otherwise) {
  std::vector<uint32_t> list(values.begin(), values.end());
  if (list.size() == 1) list.insert(list.begin(), otherwise);
  return list;
}

// With a height of 1 if it has only a width.
View WithHeight(Lowering& lowering, const View& view, const Sizes& sizes) {
  return sizes.size() == 3 ? lowering.Reshape(view, {sizes[0], sizes[1], 1, sizes[2]}) : view;
}

// Pads the end so far that there are as many windows as results, which ceil_mode rounds up. Returns
// whether it was necessary.
bool PadForResults(const Sizes& input, const Sizes& output, Window& window) {
  bool is_padded = false;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t span = (window.kernel[d] - 1) * window.dilations[d] + 1;
    const int64_t end = (output[d + 2] - 1) * window.strides[d] + span;
    const int64_t padding = end - input[d + 2] - window.start_padding[d];
    is_padded = is_padded || padding > window.end_padding[d];
    window.end_padding[d] = std::max(window.end_padding[d], padding);
  }
  return is_padded;
}

// Over the dimensions from `first` on. `factors` are a scale and, if there is one, a bias.
View EmitNormalization(Lowering& lowering, const View& x, std::vector<View> factors, size_t first) {
  std::vector<uint32_t> axes;
  for (size_t d = first; d < x.tensor.sizes.size(); ++d) axes.push_back(static_cast<uint32_t>(d));
  factors.insert(factors.begin(), x);
  return lowering.EmitNamed(
      "mean_variance_normalization", factors,
      {{"axes", std::move(axes)}, {"epsilon", lowering.reader().Float("epsilon", 1e-5f)}});
}

}  // namespace

std::vector<View> LowerPool(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const std::string& op = node.node().op;
  const Sizes& sizes = node.output(0).sizes;
  const bool has_indices = node.node().outputs.size() > 1;
  Window window = WindowOf(node, {});
  if (!node.ok()) return {View(), View()};
  const bool is_padded = PadForResults(node.sizes(0), sizes, window);
  NamedAttributes attributes = {{"strides", Spatial(window.strides, 1)},
                                {"window_size", Spatial(window.kernel, 1)},
                                {"start_padding", Spatial(window.start_padding, 0)},
                                {"end_padding", Spatial(window.end_padding, 0)},
                                {"dilations", Spatial(window.dilations, 1)}};
  std::string name(FindOperator(op)->schema);
  if (op == "AveragePool") {
    const bool counts_padding = node.Int("count_include_pad", 0) != 0;
    if (counts_padding && is_padded) {
      node.Unsupported("ceil_mode is not supported with count_include_pad.");
    }
    attributes["include_padding"] = static_cast<uint32_t>(counts_padding);
  } else if (op == "LpPool") {
    attributes["p"] = static_cast<uint32_t>(std::clamp<int64_t>(node.Int("p", 2), 0, 1 << 30));
  } else if (has_indices) {
    name += "_with_indices";
    if (node.Int("storage_order", 0) != 0) node.Unsupported("storage_order is not 0.");
  }
  const View input = WithHeight(lowering, inputs[0], node.sizes(0));
  std::vector<View> outputs = lowering.EmitAllNamed(name, {input}, attributes);
  for (View& output : outputs) {
    if (node.ok()) output = lowering.Reshape(output, sizes);
  }
  if (has_indices && node.ok()) {
    outputs[1] = lowering.EmitElementWise("cast", {outputs[1]}, sizes, {}, DataType::kInt64);
  }
  return outputs;
}

std::vector<View> LowerSoftmax(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  return {lowering.EmitNamed(FindOperator(node.node().op)->schema, {inputs[0]},
                             {{"axes", std::vector<uint32_t>{AxisOf(node, -1)}}})};
}

std::vector<View> LowerInstanceNormalization(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  Sizes channels(node.sizes(0).size(), 1);
  channels[1] = node.sizes(0)[1];
  return {EmitNormalization(
      lowering, inputs[0],
      {lowering.Reshape(inputs[1], channels), lowering.Reshape(inputs[2], channels)}, 2)};
}

std::vector<View> LowerLayerNormalization(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  std::vector<View> factors;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (node.has(i)) factors.push_back(Broadcast(inputs[i], inputs[0].tensor.sizes));
  }
  return {EmitNormalization(lowering, inputs[0], std::move(factors), AxisOf(node, -1))};
}

// Over channels alone, so that all other dimensions are one.
std::vector<View> LowerLrn(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const Sizes& sizes = node.sizes(0);
  const auto rest =
      static_cast<int64_t>(ElementCount(Sizes(sizes.begin() + 2, sizes.end())).value_or(0));
  const View normalized = lowering.EmitNamed(
      "local_response_normalization", {lowering.Reshape(inputs[0], {sizes[0], sizes[1], rest, 1})},
      {{"local_size", static_cast<uint32_t>(node.Int("size", 0))},
       {"alpha", node.Float("alpha", 1e-4f)},
       {"beta", node.Float("beta", 0.75f)},
       {"bias", node.Float("bias", 1)}});
  return {node.ok() ? lowering.Reshape(normalized, sizes) : normalized};
}

}  // namespace opmill::onnx
