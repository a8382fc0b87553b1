// Moves that views cannot express.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "kernels/onnx/elements.h"
#include "kernels/onnx/infer.h"
#include "kernels/onnx/lower.h"

namespace opmill::onnx {
namespace {

// With leading dimensions of size 1, up to that rank.
View WithRank(Lowering& lowering, const View& view, size_t rank) {
  Sizes sizes(rank - std::min(rank, view.tensor.sizes.size()), 1);
  sizes.insert(sizes.end(), view.tensor.sizes.begin(), view.tensor.sizes.end());
  return lowering.Reshape(view, sizes);
}

// What gathers takes input, indices and output of one rank.
std::vector<View> EmitGather(Lowering& lowering, Views inputs, absl::string_view name,
                             NamedAttributes attributes) {
  NodeReader& node = lowering.reader();
  const Sizes& sizes = node.output(0).sizes;
  const size_t rank = std::max(
      {inputs[0].tensor.sizes.size(), inputs[1].tensor.sizes.size(), sizes.size(), size_t{1}});
  if (const auto axis = attributes.find("axis"); axis != attributes.end()) {
    const size_t added = rank - inputs[0].tensor.sizes.size();
    axis->second = std::get<uint32_t>(axis->second) + static_cast<uint32_t>(added);
  }
  const View gathered = lowering.EmitNamed(
      name, {WithRank(lowering, inputs[0], rank), WithRank(lowering, inputs[1], rank)}, attributes);
  return {node.ok() ? lowering.Reshape(gathered, sizes) : gathered};
}

// The constant input as an attribute of the type of input 0; 0 if it is left out.
Scalar ScalarOfInput(NodeReader& node, size_t i) {
  const ElementType type = node.element(0);
  if (node.has(i) && !node.IsConstant(i)) node.Unsupported("input ", i, " must be constant.");
  const bool is_given = node.IsConstant(i) && !node.input(i).constant->empty();
  if (IsFloat(DataTypeOf(type))) {
    return Scalar(is_given ? LoadNumber<double>(node.element(i), node.input(i).constant->data(), 0)
                           : 0.0);
  }
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    const T value = is_given ? LoadNumber<T>(type, node.input(i).constant->data(), 0) : T{};
    if constexpr (std::is_signed_v<T>) return Scalar(static_cast<int64_t>(value));
    return Scalar(static_cast<uint64_t>(value));
  });
}

}  // namespace

// `join` takes 8 inputs.
std::vector<View> LowerConcat(Lowering& lowering, Views inputs) {
  constexpr size_t kMostInputs = 8;
  const NamedAttributes attributes = {{"axis", AxisOf(lowering.reader(), 0)}};
  View joined = inputs[0];
  size_t next = 1;
  while (next < inputs.size() && lowering.reader().ok()) {
    std::vector<View> parts = {joined};
    while (parts.size() < kMostInputs && next < inputs.size()) parts.push_back(inputs[next++]);
    joined = lowering.EmitNamed("join", parts, attributes);
  }
  return {joined};
}

std::vector<View> LowerGather(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  return EmitGather(
      lowering, inputs, "gather",
      {{"axis", AxisOf(node, 0)}, {"index_dimensions", static_cast<uint32_t>(node.rank(1))}});
}

std::vector<View> LowerGatherNd(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  return EmitGather(lowering, inputs, "gather_nd1",
                    {{"input_dimension_count", static_cast<uint32_t>(node.rank(0))},
                     {"indices_dimension_count", static_cast<uint32_t>(node.rank(1))},
                     {"batch_dimension_count", static_cast<uint32_t>(node.Int("batch_dims", 0))}});
}

std::vector<View> LowerGatherElements(Lowering& lowering, Views inputs) {
  return {lowering.EmitNamed("gather_elements", {inputs[0], inputs[1]},
                             {{"axis", AxisOf(lowering.reader(), 0)}})};
}

std::vector<View> LowerScatterElements(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  if (node.String("reduction", "none") != "none") node.Unsupported("reduction is not supported.");
  return {lowering.EmitNamed("scatter", {inputs[0], inputs[1], inputs[2]},
                             {{"axis", AxisOf(node, 0)}})};
}

std::vector<View> LowerPad(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  constexpr absl::string_view kModes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};
  const std::string name = node.String("mode", "constant");
  const auto mode = std::find(std::begin(kModes), std::end(kModes), name);
  if (mode == std::end(kModes)) node.Refuse("its mode is unknown.");
  const std::vector<int64_t> pads = node.Integers(1);
  std::vector<size_t> axes;
  if (node.has(3)) {
    axes = node.Axes(node.Integers(3), node.rank(0));
  } else {
    for (size_t d = 0; d < node.sizes(0).size(); ++d) axes.push_back(d);
  }
  std::vector<uint32_t> start(inputs[0].tensor.sizes.size(), 0);
  std::vector<uint32_t> end = start;
  for (size_t i = 0; i < axes.size() && node.ok(); ++i) {
    if (pads[i] < 0 || pads[i + axes.size()] < 0) {
      node.Unsupported("negative padding is not supported.");
    }
    start[axes[i]] = static_cast<uint32_t>(pads[i]);
    end[axes[i]] = static_cast<uint32_t>(pads[i + axes.size()]);
  }
  const Scalar value = ScalarOfInput(node, 2);
  if (!node.ok()) return {View()};
  return {lowering.EmitNamed("padding1", {inputs[0]},
                             {{"padding_mode", static_cast<uint32_t>(mode - kModes)},
                              {"padding_value", value},
                              {"start_padding", start},
                              {"end_padding", end}})};
}

// The nearest elements. Positions are (output - output_offset) / scale - input_offset, rounded down
// or up.
std::vector<View> LowerResize(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const std::string coordinates = node.String("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = node.String("nearest_mode", "round_prefer_floor");
  if (node.String("mode", "nearest") != "nearest") {
    node.Unsupported("modes other than nearest are not supported.");
  }
  const bool is_half = coordinates == "half_pixel";
  if (!is_half && coordinates != "asymmetric") {
    node.Unsupported("coordinate_transformation_mode is neither half_pixel nor asymmetric.");
  }
  const bool rounds_up = rounding == "ceil" || rounding == "round_prefer_floor";
  if (!rounds_up && rounding != "floor" && rounding != "round_prefer_ceil") {
    node.Refuse("its nearest_mode is unknown.");
  }
  float input_offset = is_half ? 0.5f : 0.0f;
  if (rounding == "round_prefer_floor") input_offset += 0.5f;  // the ceiling of x - 0.5
  if (rounding == "round_prefer_ceil") input_offset -= 0.5f;   // the floor of x + 0.5
  const Sizes& from = node.sizes(0);
  const TensorType& type = node.output(0);
  const bool has_sizes = node.has(3) && PackedBytes(node.input(3).type) > 0;
  std::vector<float> scales;
  for (size_t d = 0; d < from.size(); ++d) {
    scales.push_back(static_cast<float>(type.sizes[d]) / static_cast<float>(from[d]));
  }
  if (!has_sizes) {
    const std::vector<double> given = node.Numbers(2);
    const std::vector<int64_t> axes = node.Ints("axes");
    for (size_t i = 0; i < given.size() && node.ok(); ++i) {
      scales[axes.empty() ? i : node.Axis(axes[i], node.rank(0))] = static_cast<float>(given[i]);
    }
  }
  if (!node.ok()) return {View()};
  // A dimension that is not scaled stays as it is.
  std::vector<float> input_offsets(from.size(), 0);
  std::vector<float> output_offsets(from.size(), 0);
  for (size_t d = 0; d < from.size(); ++d) {
    if (scales[d] == 1) continue;
    input_offsets[d] = input_offset;
    output_offsets[d] = is_half ? -0.5f : 0.0f;
  }
  return {lowering.EmitNamed("resample2", {inputs[0]},
                             {{"rounding_direction", static_cast<uint32_t>(!rounds_up)},
                              {"scales", scales},
                              {"input_pixel_offsets", input_offsets},
                              {"output_pixel_offsets", output_offsets}},
                             DescOf(type))};
}

}  // namespace opmill::onnx
