#include "kernels/onnx/lower.h"

#include <optional>
#include <string>
#include <utility>

#include "kernels/onnx/elements.h"
#include "kernels/onnx/infer.h"
#include "kernels/onnx/operator_table.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill::onnx {
namespace {

constexpr absl::string_view kReduceFunctions[] = {"Mean", "L1",  "L2",   "LogSum", "LogSumExp",
                                                  "Max",  "Min", "Prod", "Sum",    "SumSquare"};

const Sizes& OutputSizes(Lowering& lowering) { return lowering.reader().output(0).sizes; }

}  // namespace

std::vector<View> LowerElementWise(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const absl::string_view name = FindOperator(node.node().op)->schema;
  NamedAttributes attributes;
  for (const AttributeSchema& attribute : FindSchema(name)->attributes) {
    if (!node.HasAttribute(attribute.name)) continue;
    attributes[std::string(attribute.name)] = node.Float(attribute.name, 0);
  }
  return {lowering.EmitElementWise(name, {inputs.begin(), inputs.end()}, OutputSizes(lowering),
                                   attributes)};
}

std::vector<View> LowerBitShift(Lowering& lowering, Views inputs) {
  const bool is_left = lowering.reader().String("direction", "") == "LEFT";
  return {lowering.EmitElementWise(is_left ? "bit_shift_left" : "bit_shift_right",
                                   {inputs.begin(), inputs.end()}, OutputSizes(lowering))};
}

std::vector<View> LowerCast(Lowering& lowering, Views inputs) {
  const DataType type = DataTypeOf(lowering.reader().output(0).element);
  return {lowering.EmitElementWise("cast", {inputs[0]}, OutputSizes(lowering), {}, type)};
}

std::vector<View> LowerClip(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const ElementType type = node.element(0);
  const auto bound = [&](size_t i, bool is_min) -> AttributeValue {
    if (IsFloat(DataTypeOf(type))) {
      const double inf = std::numeric_limits<double>::infinity();
      const std::vector<double> value = node.has(i) ? node.Numbers(i) : std::vector<double>();
      return Scalar(value.size() == 1 ? value[0] : is_min ? -inf : inf);
    }
    return VisitType(type, [&](auto zero) {
      using T = decltype(zero);
      T value = is_min ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      if (node.has(i)) value = LoadNumber<T>(type, node.input(i).constant->data(), 0);
      if constexpr (std::is_signed_v<T>) return Scalar(static_cast<int64_t>(value));
      return Scalar(static_cast<uint64_t>(value));
    });
  };
  AttributeValue min = bound(1, true);
  AttributeValue max = bound(2, false);
  if (!node.ok()) return {View()};
  return {lowering.EmitElementWise("clip", {inputs[0]}, OutputSizes(lowering),
                                   {{"min", std::move(min)}, {"max", std::move(max)}})};
}

std::vector<View> LowerIsInf(Lowering& lowering, Views inputs) {
  const bool detects_negative = lowering.reader().Int("detect_negative", 1) != 0;
  const bool detects_positive = lowering.reader().Int("detect_positive", 1) != 0;
  if (!detects_negative && !detects_positive) {
    lowering.reader().Unsupported("it detects neither sign.");
  }
  const uint32_t mode = detects_negative && detects_positive ? 0 : detects_positive ? 1 : 2;
  return {lowering.EmitElementWise("is_infinity", {inputs[0]}, OutputSizes(lowering),
                                   {{"infinity_mode", mode}})};
}

std::vector<View> LowerMod(Lowering& lowering, Views inputs) {
  const bool truncates = lowering.reader().Int("fmod", 0) != 0;
  return {lowering.EmitElementWise(truncates ? "modulus_truncate" : "modulus_floor",
                                   {inputs.begin(), inputs.end()}, OutputSizes(lowering))};
}

std::vector<View> LowerReduce(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  // "ReduceMean" is AVERAGE, the first of ONNX's functions and the third of DirectML's.
  const absl::string_view name = absl::string_view(node.node().op).substr(6);
  uint32_t function = static_cast<uint32_t>(ReduceFunction::kAverage);
  for (const absl::string_view known : kReduceFunctions) {
    if (known == name) break;
    ++function;
  }
  ReduceDesc desc{.function = static_cast<ReduceFunction>(function), .input = inputs[0].tensor};
  for (const size_t axis : ReducedAxes(node)) desc.axes.push_back(static_cast<uint32_t>(axis));
  return {lowering.Reshape(lowering.Emit(desc, {inputs[0]}), OutputSizes(lowering))};
}

std::vector<View> LowerArg(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  ArgReduceDesc desc{.extreme = node.node().op == "ArgMax" ? Extreme::kMax : Extreme::kMin,
                     .input = inputs[0].tensor,
                     .axes = {AxisOf(node, 0)}};
  if (node.Int("select_last_index", 0) != 0) desc.axis_direction = AxisDirection::kDecreasing;
  desc.output = TensorDesc{DataType::kInt64, ReducedSizes(desc.input.sizes, desc.axes), {}};
  return {lowering.Reshape(lowering.Emit(desc, {inputs[0]}), OutputSizes(lowering))};
}

std::vector<View> LowerTopK(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const bool is_largest = node.Int("largest", 1) != 0;
  const TopKDesc desc{
      .input = inputs[0].tensor,
      .axis = AxisOf(node, -1),
      .k = static_cast<uint32_t>(node.Integers(1)[0]),
      .axis_direction = is_largest ? AxisDirection::kDecreasing : AxisDirection::kIncreasing};
  std::vector<View> outputs = lowering.EmitAll(desc, {inputs[0]});
  outputs[1] =
      lowering.EmitElementWise("cast", {outputs[1]}, OutputSizes(lowering), {}, DataType::kInt64);
  return outputs;
}

std::vector<View> LowerCumSum(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const std::vector<int64_t> axis = node.Integers(1);
  if (node.ok() && axis.size() != 1) node.Refuse("its axis is not one number.");
  if (!node.ok()) return {View()};
  const CumulativeSummationDesc desc{
      .input = inputs[0].tensor,
      .axis = static_cast<uint32_t>(node.Axis(axis[0], node.rank(0))),
      .axis_direction =
          node.Int("reverse", 0) != 0 ? AxisDirection::kDecreasing : AxisDirection::kIncreasing,
      .has_exclusive_sum = node.Int("exclusive", 0) != 0};
  return {lowering.Emit(desc, {inputs[0]})};
}

std::vector<View> LowerReshape(Lowering& lowering, Views inputs) {
  return {lowering.Reshape(inputs[0], OutputSizes(lowering))};
}

std::vector<View> LowerTranspose(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  std::vector<int64_t> perm = node.Ints("perm");
  if (perm.empty()) {
    for (int64_t d = node.rank(0); d > 0; --d) perm.push_back(d - 1);
  }
  const std::vector<size_t> axes = node.Axes(perm, node.rank(0));
  if (axes.empty()) return {inputs[0]};  // of a scalar
  View view = inputs[0];
  const std::vector<uint32_t> strides = EffectiveStrides(inputs[0].tensor);
  view.tensor.strides.resize(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    view.tensor.sizes[d] = inputs[0].tensor.sizes[axes[d]];
    view.tensor.strides[d] = strides[axes[d]];
  }
  if (IsPacked(view.tensor)) view.tensor.strides.clear();
  return {view};
}

std::vector<View> LowerExpand(Lowering& lowering, Views inputs) {
  return {Broadcast(inputs[0], DescSizes(OutputSizes(lowering)))};
}

std::vector<View> LowerSlice(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const std::vector<SliceRange> ranges = SliceRanges(node);
  View view = inputs[0];
  view.tensor.strides = EffectiveStrides(view.tensor);
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (ranges[d].step < 0) {
      node.Unsupported("a negative step (", ranges[d].step, ") is not supported.");
      return {View()};
    }
    view.offset += static_cast<uint64_t>(ranges[d].start) * view.tensor.strides[d];
    view.tensor.sizes[d] = static_cast<uint32_t>(ranges[d].size);
    const uint64_t stride = static_cast<uint64_t>(ranges[d].step) * view.tensor.strides[d];
    view.tensor.strides[d] = ranges[d].size == 1 ? 0 : static_cast<uint32_t>(stride);
  }
  if (IsPacked(view.tensor)) view.tensor.strides.clear();
  return {view};
}

std::vector<View> LowerSplit(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  size_t axis = 0;
  std::vector<View> outputs;
  const std::vector<uint32_t> strides = EffectiveStrides(inputs[0].tensor);
  uint64_t offset = inputs[0].offset;
  for (const int64_t part : SplitSizes(node, axis)) {
    View& view = outputs.emplace_back(inputs[0]);
    view.offset = offset;
    view.tensor.sizes[axis] = static_cast<uint32_t>(part);
    view.tensor.strides = strides;
    if (IsPacked(view.tensor)) view.tensor.strides.clear();
    offset += static_cast<uint64_t>(part) * strides[axis];
  }
  return outputs;
}

// Each dimension is repeated by a dimension of stride 0 before it.
std::vector<View> LowerTile(Lowering& lowering, Views inputs) {
  NodeReader& node = lowering.reader();
  const std::vector<int64_t> repeats = node.Integers(1);
  const std::vector<uint32_t> strides = EffectiveStrides(inputs[0].tensor);
  View view = inputs[0];
  view.tensor.sizes.clear();
  view.tensor.strides.clear();
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] != 1) {
      view.tensor.sizes.push_back(static_cast<uint32_t>(repeats[d]));
      view.tensor.strides.push_back(0);
    }
    view.tensor.sizes.push_back(inputs[0].tensor.sizes[d]);
    view.tensor.strides.push_back(strides[d]);
  }
  if (view.tensor.sizes.size() > kMaxRank) {
    node.Unsupported("it repeats too many dimensions.");
    return {View()};
  }
  if (view.tensor.sizes.empty()) return {inputs[0]};
  return {lowering.Reshape(view, OutputSizes(lowering))};
}

}  // namespace opmill::onnx
