// Types of operators that move elements or work element by element.
#include <algorithm>
#include <cmath>

#include "kernels/onnx/elements.h"
#include "kernels/onnx/infer.h"

namespace opmill::onnx {
namespace {

Sizes BroadcastSizes(NodeReader& node, const Sizes& a, const Sizes& b) {
  Sizes sizes = a.size() >= b.size() ? a : b;
  const Sizes& other = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& size = sizes[sizes.size() - 1 - i];
    const int64_t with = other[other.size() - 1 - i];
    if (size == 1) {
      size = with;
    } else if (with != 1 && with != size) {
      node.Refuse("sizes ", size, " and ", with, " do not broadcast.");
    }
  }
  return sizes;
}

// Of inputs from `first` on, which have one type.
TensorType BroadcastType(NodeReader& node, size_t first) {
  TensorType type = node.input(first).type;
  for (size_t i = first + 1; i < node.input_count(); ++i) {
    type.sizes = BroadcastSizes(node, type.sizes, node.sizes(i));
    if (node.ok() && node.element(i) != type.element) {
      node.Refuse("input ", i, " is ", ToString(node.element(i)), ", but input ", first, " is ",
                  ToString(type.element), ".");
    }
  }
  return type;
}

// Replaces each size by f(size, dimension).
template <typename F>
TensorType WithSizes(const TensorType& type, F f) {
  TensorType result = type;
  for (size_t d = 0; d < result.sizes.size(); ++d) result.sizes[d] = f(result.sizes[d], d);
  return result;
}

}  // namespace

void InferSame(NodeReader& node, Types& outputs) { outputs = {node.input(0).type}; }

void InferTruth(NodeReader& node, Types& outputs) {
  outputs = {{ElementType::kBool, node.sizes(0)}};
}

void InferBinary(NodeReader& node, Types& outputs) { outputs = {BroadcastType(node, 0)}; }

void InferCompare(NodeReader& node, Types& outputs) {
  outputs = {{ElementType::kBool, BroadcastType(node, 0).sizes}};
}

void InferWhere(NodeReader& node, Types& outputs) {
  TensorType type = BroadcastType(node, 1);
  if (node.element(0) != ElementType::kBool) {
    node.Refuse("its condition is ", ToString(node.element(0)), ", not BOOL.");
  }
  type.sizes = BroadcastSizes(node, node.sizes(0), type.sizes);
  outputs = {std::move(type)};
}

void InferCast(NodeReader& node, Types& outputs) {
  const auto to = static_cast<ElementType>(node.Int("to", 0));
  if (ElementBytes(to) == 0) {
    node.Unsupported("casts to type ", node.Int("to", 0), " (", ToString(to),
                     "), which is not supported.");
  }
  outputs = {{to, node.sizes(0)}};
}

void InferTranspose(NodeReader& node, Types& outputs) {
  const int64_t rank = node.rank(0);
  std::vector<int64_t> perm = node.Ints("perm");
  if (!node.HasAttribute("perm")) {
    for (int64_t d = rank; d > 0; --d) perm.push_back(d - 1);
  }
  const std::vector<size_t> axes = node.Axes(perm, rank);
  if (node.ok() && static_cast<int64_t>(axes.size()) != rank) {
    node.Refuse("perm has ", perm.size(), " entries, but its input has ", rank, " dimensions.");
  }
  if (!node.ok()) return;
  outputs = {
      WithSizes(node.input(0).type, [&](int64_t, size_t d) { return node.sizes(0)[axes[d]]; })};
}

void InferReshape(NodeReader& node, Types& outputs) {
  std::vector<int64_t> sizes = node.Integers(1);
  const bool keeps_zeros = node.Int("allowzero", 0) != 0;
  const uint64_t count = ElementCount(node.sizes(0)).value_or(0);
  int64_t* free_size = nullptr;
  uint64_t known = 1;
  for (size_t d = 0; d < sizes.size() && node.ok(); ++d) {
    if (sizes[d] == 0 && !keeps_zeros) {
      if (d >= node.sizes(0).size()) {
        node.Refuse("shape[", d, "] is 0, but its input has ", node.rank(0), " dimensions.");
        return;
      }
      sizes[d] = node.sizes(0)[d];
    }
    if (sizes[d] == -1 && free_size == nullptr) {
      free_size = &sizes[d];
    } else if (sizes[d] < 0 || sizes[d] > int64_t{kMaxElements}) {
      node.Refuse("shape[", d, "] is ", sizes[d], ".");
    } else if (known > kMaxElements) {
      break;  // refused below
    } else {
      known *= static_cast<uint64_t>(sizes[d]);
    }
  }
  if (!node.ok()) return;
  if (free_size != nullptr && known > 0) *free_size = static_cast<int64_t>(count / known);
  if (free_size != nullptr && known == 0) *free_size = 0;
  TensorType type{node.element(0), std::move(sizes)};
  if (ElementCount(type.sizes) != count) {
    node.Refuse("cannot reshape ", ToString(node.input(0).type), " to ", ToString(type), ".");
  }
  outputs = {std::move(type)};
}

void InferFlatten(NodeReader& node, Types& outputs) {
  const int64_t rank = node.rank(0);
  int64_t axis = node.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    node.Refuse("axis (", axis, ") is not from ", -rank, " to ", rank, ".");
    return;
  }
  if (axis < 0) axis += rank;
  const Sizes& sizes = node.sizes(0);
  const auto count = [](auto begin, auto end) {
    return static_cast<int64_t>(ElementCount(Sizes(begin, end)).value_or(0));
  };
  outputs = {
      {node.element(0),
       {count(sizes.begin(), sizes.begin() + axis), count(sizes.begin() + axis, sizes.end())}}};
}

void InferSqueeze(NodeReader& node, Types& outputs) {
  const Sizes& sizes = node.sizes(0);
  std::vector<bool> is_squeezed(sizes.size(), false);
  if (node.has(1)) {
    for (const size_t axis : node.Axes(node.Integers(1), node.rank(0))) {
      if (sizes[axis] != 1) node.Refuse("the size of axis ", axis, " is ", sizes[axis], ", not 1.");
      is_squeezed[axis] = true;
    }
  } else {
    for (size_t d = 0; d < sizes.size(); ++d) is_squeezed[d] = sizes[d] == 1;
  }
  TensorType type{node.element(0), {}};
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!is_squeezed[d]) type.sizes.push_back(sizes[d]);
  }
  outputs = {std::move(type)};
}

void InferUnsqueeze(NodeReader& node, Types& outputs) {
  const std::vector<int64_t> axes = node.Integers(1);
  if (axes.size() > kMaxRank) node.Refuse("it has ", axes.size(), " axes.");
  if (!node.ok()) return;
  const int64_t rank = node.rank(0) + static_cast<int64_t>(axes.size());
  TensorType type{node.element(0), Sizes(static_cast<size_t>(rank), 0)};
  for (const size_t axis : node.Axes(axes, rank)) type.sizes[axis] = 1;
  if (!node.ok()) return;
  size_t next = 0;
  for (int64_t& size : type.sizes) {
    if (size == 0) size = node.sizes(0)[next++];
  }
  outputs = {std::move(type)};
}

void InferExpand(NodeReader& node, Types& outputs) {
  const std::vector<int64_t> sizes = node.Integers(1);
  outputs = {{node.element(0), BroadcastSizes(node, node.sizes(0), sizes)}};
}

std::vector<SliceRange> SliceRanges(NodeReader& node) {
  const std::vector<int64_t> starts = node.Integers(1);
  const std::vector<int64_t> ends = node.Integers(2);
  std::vector<int64_t> axes;
  if (node.has(3)) {
    axes = node.Integers(3);
  } else {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const std::vector<int64_t> steps =
      node.has(4) ? node.Integers(4) : std::vector<int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    node.Refuse("starts, ends, axes and steps have ", starts.size(), ", ", ends.size(), ", ",
                axes.size(), " and ", steps.size(), " entries.");
  }
  const std::vector<size_t> dimensions = node.Axes(axes, node.rank(0));
  std::vector<SliceRange> ranges;
  for (const int64_t size : node.sizes(0)) ranges.push_back({.size = size});
  for (size_t i = 0; i < dimensions.size() && node.ok(); ++i) {
    SliceRange& range = ranges[dimensions[i]];
    const int64_t size = range.size;
    const int64_t step = std::clamp<int64_t>(steps[i], -int64_t{kMaxElements}, kMaxElements);
    if (step == 0) node.Refuse("steps[", i, "] is 0.");
    if (!node.ok()) break;
    const auto from_front = [&](int64_t at) { return at < 0 ? at + size : at; };
    const int64_t least = step > 0 ? 0 : -1;
    const int64_t most = step > 0 ? size : size - 1;
    const int64_t start = std::clamp(from_front(starts[i]), step > 0 ? 0 : int64_t{0}, most);
    const int64_t end = std::clamp(from_front(ends[i]), least, step > 0 ? size : size - 1);
    const int64_t distance = step > 0 ? end - start : start - end;
    const int64_t magnitude = std::abs(step);
    range = {start, step, distance <= 0 ? 0 : (distance + magnitude - 1) / magnitude};
  }
  return ranges;
}

void InferSlice(NodeReader& node, Types& outputs) {
  const std::vector<SliceRange> ranges = SliceRanges(node);
  if (!node.ok()) return;
  outputs = {WithSizes(node.input(0).type, [&](int64_t, size_t d) { return ranges[d].size; })};
}

std::vector<int64_t> SplitSizes(NodeReader& node, size_t& axis) {
  axis = node.Axis(node.Int("axis", 0), node.rank(0));
  if (!node.ok()) return {};
  const int64_t size = node.sizes(0)[axis];
  if (node.has(1)) return node.Integers(1);
  const int64_t parts = static_cast<int64_t>(node.node().outputs.size());
  const int64_t part = (size + parts - 1) / parts;
  std::vector<int64_t> split(static_cast<size_t>(parts), part);
  split.back() = size - part * (parts - 1);
  return split;
}

void InferSplit(NodeReader& node, Types& outputs) {
  size_t axis = 0;
  const std::vector<int64_t> split = SplitSizes(node, axis);
  if (!node.ok()) return;
  int64_t sum = 0;
  bool is_valid = split.size() == node.node().outputs.size();
  for (const int64_t part : split) {
    is_valid = is_valid && part >= 0 && part <= node.sizes(0)[axis];
    if (is_valid) sum += part;
    outputs.push_back(node.input(0).type);
    outputs.back().sizes[axis] = part;
  }
  if (!is_valid || sum != node.sizes(0)[axis]) {
    node.Refuse("its ", split.size(), " parts do not divide the size (", node.sizes(0)[axis],
                ") of axis ", axis, " among ", node.node().outputs.size(), " outputs.");
  }
}

void InferTile(NodeReader& node, Types& outputs) {
  const std::vector<int64_t> repeats = node.Integers(1);
  if (node.ok() && repeats.size() != node.sizes(0).size()) {
    node.Refuse("repeats has ", repeats.size(), " entries, but its input has ", node.rank(0),
                " dimensions.");
  }
  for (const int64_t repeat : repeats) {
    if (repeat < 0 || repeat > int64_t{kMaxElements}) node.Refuse("repeats contains ", repeat, ".");
  }
  if (!node.ok()) return;
  outputs = {
      WithSizes(node.input(0).type, [&](int64_t size, size_t d) { return size * repeats[d]; })};
}

void InferConcat(NodeReader& node, Types& outputs) {
  const size_t axis = node.Axis(node.Int("axis", 0), node.rank(0));
  TensorType type = node.input(0).type;
  for (size_t i = 1; i < node.input_count() && node.ok(); ++i) {
    TensorType other = node.input(i).type;
    if (!node.ok()) return;
    if (other.sizes.size() == type.sizes.size() && axis < other.sizes.size()) {
      std::swap(other.sizes[axis], type.sizes[axis]);
      const int64_t sum = type.sizes[axis] + other.sizes[axis];
      other.sizes[axis] = type.sizes[axis] = sum;
    }
    if (other != type) {
      node.Refuse("input ", i, " (", ToString(node.input(i).type), ") does not fit to input 0 (",
                  ToString(node.input(0).type), ").");
    }
  }
  outputs = {std::move(type)};
}

void InferPad(NodeReader& node, Types& outputs) {
  const std::vector<int64_t> pads = node.Integers(1);
  std::vector<int64_t> axes;
  if (node.has(3)) {
    axes = node.Integers(3);
  } else {
    for (int64_t d = 0; d < node.rank(0); ++d) axes.push_back(d);
  }
  const std::vector<size_t> dimensions = node.Axes(axes, node.rank(0));
  if (node.ok() && pads.size() != 2 * dimensions.size()) {
    node.Refuse("pads has ", pads.size(), " entries for ", dimensions.size(), " dimensions.");
  }
  if (!node.ok()) return;
  TensorType type = node.input(0).type;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    for (const int64_t pad : {pads[i], pads[i + dimensions.size()]}) {
      if (std::abs(pad) > int64_t{kMaxElements}) node.Refuse("pads contains ", pad, ".");
      if (node.ok()) type.sizes[dimensions[i]] += pad;
    }
  }
  outputs = {std::move(type)};
}

void InferGather(NodeReader& node, Types& outputs) {
  const size_t axis = node.Axis(node.Int("axis", 0), node.rank(0));
  const Sizes& indices = node.sizes(1);
  if (!node.ok()) return;
  TensorType type = node.input(0).type;
  type.sizes.erase(type.sizes.begin() + static_cast<ptrdiff_t>(axis));
  type.sizes.insert(type.sizes.begin() + static_cast<ptrdiff_t>(axis), indices.begin(),
                    indices.end());
  outputs = {std::move(type)};
}

void InferGatherElements(NodeReader& node, Types& outputs) {
  node.Axis(node.Int("axis", 0), node.rank(0));
  if (node.rank(1) != node.rank(0)) {
    node.Refuse("indices have ", node.rank(1), " dimensions, but data has ", node.rank(0), ".");
  }
  outputs = {{node.element(0), node.sizes(1)}};
}

void InferGatherNd(NodeReader& node, Types& outputs) {
  const int64_t batch = node.Int("batch_dims", 0);
  const Sizes& data = node.sizes(0);
  const Sizes& indices = node.sizes(1);
  const int64_t last = indices.empty() ? -1 : indices.back();
  if (batch < 0 || last < 0 || batch >= node.rank(1) || batch + last > node.rank(0)) {
    node.Refuse("indices ", ToString(node.input(1).type), " with batch_dims ", batch,
                " do not fit to data ", ToString(node.input(0).type), ".");
    return;
  }
  TensorType type{node.element(0), Sizes(indices.begin(), indices.end() - 1)};
  type.sizes.insert(type.sizes.end(), data.begin() + batch + last, data.end());
  outputs = {std::move(type)};
}

void InferScatter(NodeReader& node, Types& outputs) {
  if (node.element(2) != node.element(0)) {
    node.Refuse("updates are ", ToString(node.element(2)), ", but data is ",
                ToString(node.element(0)), ".");
  }
  outputs = {node.input(0).type};
}

void InferRange(NodeReader& node, Types& outputs) {
  const std::vector<double> start = node.Numbers(0);
  const std::vector<double> limit = node.Numbers(1);
  const std::vector<double> delta = node.Numbers(2);
  if (node.ok() && (start.size() != 1 || limit.size() != 1 || delta.size() != 1)) {
    node.Refuse("start, limit and delta are not scalars.");
  }
  if (!node.ok()) return;
  const double count = std::ceil((limit[0] - start[0]) / delta[0]);
  if (!(count <= double{kMaxElements})) {  // also if it is NaN
    node.Refuse("it has more than ", kMaxElements, " elements.");
    return;
  }
  outputs = {{node.element(0), {static_cast<int64_t>(std::max(count, 0.0))}}};
}

void InferNonZero(NodeReader& node, Types& outputs) {
  const std::vector<double> numbers = node.Numbers(0);
  const int64_t count =
      std::count_if(numbers.begin(), numbers.end(), [](double x) { return x != 0; });
  outputs = {{ElementType::kInt64, {node.rank(0), count}}};
}

void InferResize(NodeReader& node, Types& outputs) {
  const Sizes& sizes = node.sizes(0);
  const bool has_sizes = node.has(3) && !(node.IsConstant(3) && node.Integers(3).empty());
  const std::vector<int64_t> axes = node.Ints("axes");
  std::vector<size_t> dimensions = node.Axes(axes, node.rank(0));
  if (axes.empty()) {
    for (size_t d = 0; d < sizes.size(); ++d) dimensions.push_back(d);
  }
  TensorType type = node.input(0).type;
  const std::vector<int64_t> target = has_sizes ? node.Integers(3) : std::vector<int64_t>();
  const std::vector<double> scales = has_sizes ? std::vector<double>() : node.Numbers(2);
  if (!node.ok()) return;
  if ((has_sizes ? target.size() : scales.size()) != dimensions.size()) {
    node.Refuse(has_sizes ? "sizes" : "scales", " has ", has_sizes ? target.size() : scales.size(),
                " entries for ", dimensions.size(), " dimensions.");
    return;
  }
  if (node.String("keep_aspect_ratio_policy", "stretch") != "stretch") {
    node.Unsupported("keep_aspect_ratio_policy is not 'stretch'.");
  }
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const size_t d = dimensions[i];
    if (has_sizes) {
      type.sizes[d] = target[i];
      continue;
    }
    const double size = std::floor(static_cast<double>(sizes[d]) * scales[i]);
    if (!(size >= 0 && size <= double{kMaxElements})) {
      node.Refuse("scales[", i, "] is ", scales[i], ".");
      return;
    }
    type.sizes[d] = static_cast<int64_t>(size);
  }
  outputs = {std::move(type)};
}

}  // namespace opmill::onnx
