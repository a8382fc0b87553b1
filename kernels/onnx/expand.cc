#include "kernels/onnx/expand.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

namespace opmill::onnx {
namespace {

Attributes Axes(int64_t axis) { return {{"axis", axis}}; }

// The dimensions from `first` on.
std::vector<int64_t> DimensionsFrom(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t d = first; d < rank; ++d) axes.push_back(d);
  return axes;
}

ValueId Reduce(Builder& build, absl::string_view op, ValueId x, const std::vector<int64_t>& axes) {
  return build.Add(op, {x, build.Constant(axes)});
}

ValueId ScalarLike(Builder& build, ValueId x, double value) {
  return build.Constant(ScalarOf(build.value(x).type.element, value));
}

// (x - mean) / sqrt(variance + epsilon) over the axes; also the mean and 1 / sqrt.
struct Normalized {
  ValueId x, mean, scale;
};
Normalized Normalize(Builder& build, ValueId x, const std::vector<int64_t>& axes, float epsilon) {
  const ValueId mean = Reduce(build, "ReduceMean", x, axes);
  const ValueId centered = build.Add("Sub", {x, mean});
  const ValueId variance =
      Reduce(build, "ReduceMean", build.Add("Mul", {centered, centered}), axes);
  const ValueId deviation =
      build.Add("Sqrt", {build.Add("Add", {variance, ScalarLike(build, x, epsilon)})});
  return {build.Add("Div", {centered, deviation}), mean, build.Add("Reciprocal", {deviation})};
}

// A value for each channel, for tensors of that rank.
ValueId PerChannel(Builder& build, ValueId x, int64_t rank) {
  Sizes sizes = build.value(x).type.sizes;
  for (int64_t d = 2; d < rank; ++d) sizes.push_back(1);
  return build.Reshape(x, sizes);
}

}  // namespace

Expanded ExpandIdentity(NodeReader& node, Builder&) { return {{node.node().inputs[0]}}; }

Expanded ExpandDropout(NodeReader& node, Builder& build) {
  if (node.has(2) && !(node.IsConstant(2) && (*node.input(2).constant)[0] == 0)) {
    node.Unsupported("training is not supported.");
    return std::nullopt;
  }
  std::vector<ValueId> outputs = {node.node().inputs[0]};
  if (node.node().outputs.size() > 1 && node.node().outputs[1] != kNoValue) {
    const ValueId all = build.Constant(TensorOf(ElementType::kBool, {}, std::vector<uint8_t>{1}));
    outputs.push_back(build.Add("Expand", {all, build.Constant(node.sizes(0))}));
  }
  return outputs;
}

Expanded ExpandShape(NodeReader& node, Builder& build) {
  const int64_t rank = node.rank(0);
  const auto at = [&](absl::string_view name, int64_t otherwise) {
    const int64_t index = node.Int(name, otherwise);
    return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  const int64_t start = at("start", 0);
  const int64_t end = std::max(start, at("end", rank));
  const Sizes& sizes = node.sizes(0);
  return {{build.Constant(Sizes(sizes.begin() + start, sizes.begin() + end))}};
}

Expanded ExpandSize(NodeReader& node, Builder& build) {
  const auto count = static_cast<int64_t>(ElementCount(node.sizes(0)).value_or(0));
  return {{build.Constant(TensorOf(ElementType::kInt64, {}, std::vector<int64_t>{count}))}};
}

Expanded ExpandConstantOfShape(NodeReader& node, Builder& build) {
  Tensor value = TensorOf(ElementType::kFloat, {}, std::vector<float>{0});
  if (const auto found = node.node().attributes.find("value");
      found != node.node().attributes.end()) {
    const Tensor* const tensor = std::get_if<Tensor>(&found->second);
    if (tensor == nullptr || ElementCount(tensor->type.sizes) != 1 || tensor->bytes->empty()) {
      node.Refuse("attribute 'value' is not a tensor of one element.");
      return std::nullopt;
    }
    value = *tensor;
    value.type.sizes.clear();
  }
  return {{build.Add("Expand", {build.Constant(std::move(value)), node.node().inputs[0]})}};
}

Expanded ExpandConcat(NodeReader& node, Builder& build) {
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Sizes sizes = node.sizes(i);
    if (sizes.size() != 1 && ElementCount(sizes) == 0) return std::nullopt;
    if (sizes != Sizes{0}) inputs.push_back(node.node().inputs[i]);
  }
  if (!node.ok() || inputs.empty()) return std::nullopt;
  if (inputs.size() == 1) return {{inputs[0]}};
  if (inputs.size() == node.input_count()) return std::nullopt;
  return {{build.Add("Concat", std::move(inputs), Axes(node.Int("axis", 0)))}};
}

Expanded ExpandGather(NodeReader& node, Builder& build) {
  if (node.IsConstant(0) || !node.IsConstant(1) || ElementCount(node.sizes(1)) != 1) {
    return std::nullopt;
  }
  Sizes sizes = node.sizes(0);
  const Sizes index_sizes = node.sizes(1);
  const size_t axis = node.Axis(node.Int("axis", 0), node.rank(0));
  const std::vector<int64_t> indices = node.Integers(1);
  if (!node.ok()) return std::nullopt;
  int64_t index = indices[0];
  if (index < -sizes[axis] || index >= sizes[axis]) {
    node.Refuse("its index (", index, ") is not from ", -sizes[axis], " to ", sizes[axis] - 1, ".");
    return std::nullopt;
  }
  if (index < 0) index += sizes[axis];
  const ValueId element = build.Add(
      "Slice", {node.node().inputs[0], build.Constant({index}), build.Constant({index + 1}),
                build.Constant({static_cast<int64_t>(axis)})});
  const auto at = sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(axis));
  sizes.insert(at, index_sizes.begin(), index_sizes.end());
  return {{build.Reshape(element, sizes)}};
}

Expanded ExpandCast(NodeReader& node, Builder& build) {
  const ElementType from = node.element(0);
  const auto to = static_cast<ElementType>(node.Int("to", 0));
  const ValueId x = node.node().inputs[0];
  if (from == to) return {{x}};
  if (to != ElementType::kBool || node.IsConstant(0)) return std::nullopt;
  return {{build.Add("Not", {build.Add("Equal", {x, ScalarLike(build, x, 0)})})}};
}

Expanded ExpandCastLike(NodeReader& node, Builder& build) {
  const auto to = static_cast<int64_t>(node.element(1));
  return {{build.Add("Cast", {node.node().inputs[0]}, {{"to", to}})}};
}

Expanded ExpandClip(NodeReader& node, Builder& build) {
  const bool is_constant =
      (!node.has(1) || node.IsConstant(1)) && (!node.has(2) || node.IsConstant(2));
  for (size_t i = 1; i < 3; ++i) {
    if (node.has(i) && (ElementCount(node.sizes(i)) != 1 || node.element(i) != node.element(0))) {
      // Until opset 10 a bound is a FLOAT, whatever the input is.
      const bool is_old = node.node().opset < 11;
      if (!is_old) node.Refuse("input ", i, " is not a scalar of the input's type.");
    }
  }
  if (is_constant || !node.ok()) return std::nullopt;
  ValueId x = node.node().inputs[0];
  if (node.has(1)) x = build.Add("Max", {x, node.node().inputs[1]});
  if (node.has(2)) x = build.Add("Min", {x, node.node().inputs[2]});
  return {{x}};
}

Expanded ExpandGelu(NodeReader& node, Builder& build) {
  if (node.String("approximate", "none") == "none") return std::nullopt;
  const ValueId x = node.node().inputs[0];
  const auto times = [&](ValueId a, double factor) {
    return build.Add("Mul", {a, ScalarLike(build, x, factor)});
  };
  const ValueId cube = build.Add("Mul", {build.Add("Mul", {x, x}), x});
  const ValueId inner =
      times(build.Add("Add", {x, times(cube, 0.044715)}), std::sqrt(2 / std::numbers::pi));
  const ValueId tanh = build.Add("Tanh", {inner});
  return {{build.Add("Mul", {times(x, 0.5), build.Add("Add", {tanh, ScalarLike(build, x, 1)})})}};
}

Expanded ExpandVariadic(NodeReader& node, Builder& build) {
  const std::string op = node.node().op == "Sum" ? "Add" : node.node().op;
  if (node.input_count() == 2 && op == node.node().op) return std::nullopt;
  ValueId sum = node.node().inputs[0];
  for (size_t i = 1; i < node.input_count(); ++i) {
    sum = build.Add(op, {sum, node.node().inputs[i]});
  }
  return {{sum}};
}

Expanded ExpandMean(NodeReader& node, Builder& build) {
  const ValueId sum = build.Add("Sum", node.node().inputs);
  const double count = static_cast<double>(node.input_count());
  return {{build.Add("Div", {sum, ScalarLike(build, sum, count)})}};
}

// A slope of one dimension was of the channels until opset 6.
Expanded ExpandPRelu(NodeReader& node, Builder& build) {
  if (node.node().opset > 6 || node.rank(0) < 3 || node.rank(1) != 1) return std::nullopt;
  const std::vector<ValueId> inputs = node.node().inputs;
  return {{build.Add("PRelu", {inputs[0], PerChannel(build, inputs[1], node.rank(0))})}};
}

Expanded ExpandPow(NodeReader& node, Builder& build) {
  const ElementType type = node.element(0);
  if (!node.ok()) return std::nullopt;
  const bool is_scalar = node.IsConstant(1) && ElementCount(node.sizes(1)) == 1 &&
                         node.sizes(1).size() <= node.sizes(0).size();
  if (is_scalar && type == ElementType::kFloat && node.Numbers(1)[0] == 2) {
    return {{build.Add("Mul", {node.node().inputs[0], node.node().inputs[0]})}};
  }
  if (node.element(1) == type) return std::nullopt;
  const ValueId exponent =
      build.Add("Cast", {node.node().inputs[1]}, {{"to", static_cast<int64_t>(type)}});
  return {{build.Add("Pow", {node.node().inputs[0], exponent})}};
}

Expanded ExpandBatchNormalization(NodeReader& node, Builder& build) {
  const std::vector<ValueId> inputs = node.node().inputs;  // x, scale, bias, mean, variance
  const int64_t rank = node.rank(0);
  for (size_t i = 1; i < 5; ++i) {
    if (rank < 2 || node.sizes(i) != Sizes{node.sizes(0)[1]}) {
      node.Refuse("input ", i, " is ", ToString(node.input(i).type), ", but input 0 is ",
                  ToString(node.input(0).type), ".");
    }
  }
  if (node.Int("training_mode", 0) != 0) node.Unsupported("training is not supported.");
  if (node.Int("spatial", 1) != 1) node.Unsupported("spatial = 0 is not supported.");
  if (!node.ok()) return std::nullopt;
  const ValueId epsilon = ScalarLike(build, inputs[4], node.Float("epsilon", 1e-5f));
  const ValueId deviation = build.Add("Sqrt", {build.Add("Add", {inputs[4], epsilon})});
  const ValueId scale = build.Add("Div", {inputs[1], deviation});
  const ValueId shift = build.Add("Sub", {inputs[2], build.Add("Mul", {inputs[3], scale})});
  const ValueId scaled = build.Add("Mul", {inputs[0], PerChannel(build, scale, rank)});
  return {{build.Add("Add", {scaled, PerChannel(build, shift, rank)})}};
}

// Only the mean and 1 / deviation are outputs that mean_variance_normalization does not have.
Expanded ExpandLayerNormalization(NodeReader& node, Builder& build) {
  const int64_t rank = node.rank(0);
  const int64_t axis = static_cast<int64_t>(node.Axis(node.Int("axis", -1), rank));
  const float epsilon = node.Float("epsilon", 1e-5f);
  if (node.Int("stash_type", 1) != 1) node.Unsupported("stash_type is not 1.");
  const std::vector<ValueId>& wanted = node.node().outputs;
  const bool wants_one =
      std::all_of(wanted.begin() + 1, wanted.end(), [](ValueId id) { return id == kNoValue; });
  if (!node.ok() || wants_one) return std::nullopt;
  const Normalized normalized =
      Normalize(build, node.node().inputs[0], DimensionsFrom(axis, rank), epsilon);
  ValueId x = build.Add("Mul", {normalized.x, node.node().inputs[1]});
  if (node.has(2)) x = build.Add("Add", {x, node.node().inputs[2]});
  return {{x, normalized.mean, normalized.scale}};
}

// What is flattened has one axis.
Expanded ExpandSoftmax(NodeReader& node, Builder& build) {
  if (node.Int("is_flattened", 0) == 0) return std::nullopt;
  const Sizes sizes = node.sizes(0);
  const ValueId flat = build.Add("Flatten", {node.node().inputs[0]}, Axes(node.Int("axis", -1)));
  return {{build.Reshape(build.Add(node.node().op, {flat}, Axes(-1)), sizes)}};
}

Expanded ExpandGlobalPool(NodeReader& node, Builder& build) {
  const absl::string_view op = node.node().op == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean";
  if (node.rank(0) < 3) node.Refuse("its input has ", node.rank(0), " dimensions, less than 3.");
  if (!node.ok()) return std::nullopt;
  return {{Reduce(build, op, node.node().inputs[0], DimensionsFrom(2, node.rank(0)))}};
}

// The block size, if X has 4 dimensions.
static int64_t BlockOf(NodeReader& node) {
  const int64_t block = node.Int("blocksize", 0);
  if (node.rank(0) != 4 || block < 1 || block > (1 << 16)) {
    node.Refuse("blocksize (", block, ") is not from 1 to 65536, or its input has ", node.rank(0),
                " dimensions, not 4.");
  }
  return node.ok() ? block : 0;
}

Expanded ExpandSpaceToDepth(NodeReader& node, Builder& build) {
  const int64_t block = BlockOf(node);
  if (block == 0) return std::nullopt;
  const Sizes s = node.sizes(0);
  const ValueId x =
      build.Reshape(node.node().inputs[0], {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const ValueId moved =
      build.Add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 5, 1, 2, 4}}});
  return {{build.Reshape(moved, {s[0], s[1] * block * block, s[2] / block, s[3] / block})}};
}

Expanded ExpandDepthToSpace(NodeReader& node, Builder& build) {
  const int64_t block = BlockOf(node);
  if (block == 0) return std::nullopt;
  const Sizes s = node.sizes(0);
  const int64_t depth = s[1] / (block * block);
  const bool is_crd = node.String("mode", "DCR") == "CRD";
  const ValueId x =
      build.Reshape(node.node().inputs[0], is_crd ? Sizes{s[0], depth, block, block, s[2], s[3]}
                                                  : Sizes{s[0], block, block, depth, s[2], s[3]});
  const ValueId moved = build.Add("Transpose", {x},
                                  {{"perm", is_crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3}
                                                   : std::vector<int64_t>{0, 3, 4, 1, 5, 2}}});
  return {{build.Reshape(moved, {s[0], depth, s[2] * block, s[3] * block})}};
}

}  // namespace opmill::onnx
