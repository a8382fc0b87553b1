// Types of reductions, products, convolutions, pooling and normalizations.
#include <algorithm>

#include "kernels/onnx/infer.h"

namespace opmill::onnx {
namespace {

constexpr int64_t kMostWindow = int64_t{1} << 31;  // of a stride, dilation, padding or size

// The attribute, or `otherwise` for each spatial dimension.
std::vector<int64_t> PerDimension(NodeReader& node, absl::string_view name, size_t count,
                                  int64_t otherwise, int64_t least) {
  std::vector<int64_t> values = node.Ints(name);
  if (!node.HasAttribute(name)) values.assign(count, otherwise);
  if (values.size() != count) {
    node.Refuse(name, " has ", values.size(), " entries, but ", count, " are needed.");
  }
  for (const int64_t value : values) {
    if (value < least || value > kMostWindow) {
      node.Refuse(name, " contains ", value, ", which is not from ", least, " to ", kMostWindow,
                  ".");
    }
  }
  return values;
}

int64_t DividedUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

void CheckChannels(NodeReader& node, int64_t expected, absl::string_view of) {
  if (node.ok() && node.sizes(0)[1] != expected) {
    node.Refuse("its input has ", node.sizes(0)[1], " channels, but ", of, " ", expected, ".");
  }
}

void CheckSameElement(NodeReader& node) {
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (node.has(i) && node.element(i) != node.element(0)) {
      node.Refuse("input ", i, " is ", ToString(node.element(i)), ", but input 0 is ",
                  ToString(node.element(0)), ".");
    }
  }
}

// Whether the window fits; X and W of a convolution have 3 to 5 dimensions.
bool HasSpatial(NodeReader& node) {
  if (node.rank(0) >= 3 && node.rank(0) <= 5) return node.ok();
  node.Refuse("its input has ", node.rank(0), " dimensions, not 3 to 5.");
  return false;
}

}  // namespace

std::vector<size_t> ReducedAxes(NodeReader& node) {
  std::vector<int64_t> axes;
  if (node.has(1)) axes = node.Integers(1);
  if (axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
    for (int64_t d = 0; d < node.rank(0); ++d) axes.push_back(d);
  }
  return node.Axes(axes, node.rank(0));
}

void InferReduce(NodeReader& node, Types& outputs) {
  std::vector<bool> is_reduced(node.sizes(0).size(), false);
  for (const size_t axis : ReducedAxes(node)) is_reduced[axis] = true;
  const bool keeps = node.Int("keepdims", 1) != 0;
  TensorType type{node.element(0), {}};
  for (size_t d = 0; d < is_reduced.size(); ++d) {
    if (!is_reduced[d]) {
      type.sizes.push_back(node.sizes(0)[d]);
    } else if (keeps) {
      type.sizes.push_back(1);
    }
  }
  outputs = {std::move(type)};
}

void InferArg(NodeReader& node, Types& outputs) {
  const size_t axis = node.Axis(node.Int("axis", 0), node.rank(0));
  TensorType type{ElementType::kInt64, node.sizes(0)};
  if (!node.ok()) return;
  type.sizes[axis] = 1;
  if (node.Int("keepdims", 1) == 0) {
    type.sizes.erase(type.sizes.begin() + static_cast<ptrdiff_t>(axis));
  }
  outputs = {std::move(type)};
}

void InferTopK(NodeReader& node, Types& outputs) {
  const size_t axis = node.Axis(node.Int("axis", -1), node.rank(0));
  const std::vector<int64_t> k = node.Integers(1);
  if (!node.ok()) return;
  if (k.size() != 1 || k[0] < 0 || k[0] > node.sizes(0)[axis]) {
    node.Refuse("k is not a number from 0 to the size (", node.sizes(0)[axis], ") of axis ", axis,
                ".");
    return;
  }
  TensorType type = node.input(0).type;
  type.sizes[axis] = k[0];
  outputs = {type, {ElementType::kInt64, type.sizes}};
}

void InferGemm(NodeReader& node, Types& outputs) {
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    node.Refuse("its inputs have ", node.rank(0), " and ", node.rank(1), " dimensions, not 2.");
  }
  CheckSameElement(node);
  if (!node.ok()) return;
  const bool is_a_transposed = node.Int("transA", 0) != 0;
  const bool is_b_transposed = node.Int("transB", 0) != 0;
  const int64_t k = node.sizes(0)[is_a_transposed ? 0 : 1];
  if (node.sizes(1)[is_b_transposed ? 1 : 0] != k) {
    node.Refuse("it multiplies ", ToString(node.input(0).type), " with ",
                ToString(node.input(1).type), ".");
  }
  const Sizes sizes = {node.sizes(0)[is_a_transposed ? 1 : 0],
                       node.sizes(1)[is_b_transposed ? 0 : 1]};
  if (node.has(2)) {
    const Sizes& c = node.sizes(2);
    bool fits = c.size() <= 2;
    for (size_t i = 0; fits && i < c.size(); ++i) {
      fits = c[c.size() - 1 - i] == 1 || c[c.size() - 1 - i] == sizes[1 - i];
    }
    if (!fits) node.Refuse("C is ", ToString(node.input(2).type), ".");
  }
  outputs = {{node.element(0), sizes}};
}

void InferMatMul(NodeReader& node, Types& outputs) {
  Sizes a = node.sizes(0);
  Sizes b = node.sizes(1);
  CheckSameElement(node);
  if (a.empty() || b.empty()) node.Refuse("an input is a scalar.");
  if (!node.ok()) return;
  const bool is_a_vector = a.size() == 1;
  const bool is_b_vector = b.size() == 1;
  if (is_a_vector) a.insert(a.begin(), 1);
  if (is_b_vector) b.push_back(1);
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  bool fits = a[rank - 1] == b[rank - 2];
  Sizes sizes = a;
  for (size_t d = 0; d + 2 < rank; ++d) {
    fits = fits && (a[d] == b[d] || a[d] == 1 || b[d] == 1);
    if (a[d] == 1) sizes[d] = b[d];
  }
  if (!fits) {
    node.Refuse("it multiplies ", ToString(node.input(0).type), " with ",
                ToString(node.input(1).type), ".");
  }
  sizes[rank - 1] = b[rank - 1];
  if (is_b_vector) sizes.pop_back();
  if (is_a_vector) sizes.erase(sizes.end() - (is_b_vector ? 1 : 2));
  outputs = {{node.element(0), std::move(sizes)}};
}

Window WindowOf(NodeReader& node, std::vector<int64_t> kernel) {
  const size_t count = node.sizes(0).size() < 2 ? 0 : node.sizes(0).size() - 2;
  Window window;
  if (node.HasAttribute("kernel_shape")) kernel = PerDimension(node, "kernel_shape", count, 1, 1);
  window.kernel = std::move(kernel);
  window.strides = PerDimension(node, "strides", count, 1, 1);
  window.dilations = PerDimension(node, "dilations", count, 1, 1);
  const std::vector<int64_t> pads = PerDimension(node, "pads", 2 * count, 0, 0);
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (!node.ok()) return window;
  window.start_padding.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(count));
  window.end_padding.assign(pads.begin() + static_cast<ptrdiff_t>(count), pads.end());
  const bool is_upper = auto_pad == "SAME_UPPER";
  if (!is_upper && auto_pad != "SAME_LOWER") {
    if (auto_pad == "VALID") {
      window.start_padding.assign(count, 0);
      window.end_padding.assign(count, 0);
    } else if (auto_pad != "NOTSET") {
      node.Refuse("auto_pad is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER.");
    }
    return window;
  }
  for (size_t d = 0; d < count; ++d) {
    const int64_t size = node.sizes(0)[d + 2];
    const int64_t span = (window.kernel[d] - 1) * window.dilations[d] + 1;
    const int64_t total = std::max<int64_t>(
        0, (DividedUp(size, window.strides[d]) - 1) * window.strides[d] + span - size);
    window.start_padding[d] = is_upper ? total / 2 : total - total / 2;
    window.end_padding[d] = total - window.start_padding[d];
  }
  return window;
}

// The sizes of what a window passes over; `rounds_up` is ceil_mode.
static Sizes WindowSizes(NodeReader& node, const Window& window, bool rounds_up) {
  Sizes sizes;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    const int64_t size = node.sizes(0)[d + 2];
    const int64_t padded = size + window.start_padding[d] + window.end_padding[d];
    const int64_t span = (window.kernel[d] - 1) * window.dilations[d] + 1;
    if (padded < span) {
      node.Refuse("its window of ", span, " is larger than dimension ", d + 2,
                  " of its input with padding, ", padded, ".");
      return sizes;
    }
    int64_t steps = (padded - span) / window.strides[d];
    if (rounds_up && steps * window.strides[d] != padded - span) {
      // A window that begins in the padding at the end does not count.
      if ((steps + 1) * window.strides[d] < size + window.start_padding[d]) ++steps;
    }
    sizes.push_back(steps + 1);
  }
  return sizes;
}

void InferConv(NodeReader& node, Types& outputs) {
  CheckSameElement(node);
  if (!HasSpatial(node) || node.rank(1) != node.rank(0)) {
    node.Refuse("W has ", node.rank(1), " dimensions, but X has ", node.rank(0), ".");
    return;
  }
  const Sizes& w = node.sizes(1);
  const int64_t groups = node.Int("group", 1);
  if (groups < 1 || groups > w[0] || w[0] % groups != 0) {
    node.Refuse("group (", groups, ") does not divide its ", w[0], " filters.");
    return;
  }
  CheckChannels(node, w[1] * groups, "W and group say");
  if (node.has(2) && node.sizes(2) != Sizes{w[0]}) {
    node.Refuse("B is ", ToString(node.input(2).type), ", but there are ", w[0], " filters.");
  }
  const Window window = WindowOf(node, Sizes(w.begin() + 2, w.end()));
  if (!node.ok()) return;
  if (!std::equal(window.kernel.begin(), window.kernel.end(), w.begin() + 2, w.end())) {
    node.Refuse("kernel_shape differs from the sizes of W, ", ToString(node.input(1).type), ".");
    return;
  }
  Sizes sizes = WindowSizes(node, window, false);
  sizes.insert(sizes.begin(), {node.sizes(0)[0], w[0]});
  outputs = {{node.element(0), std::move(sizes)}};
}

void InferConvTranspose(NodeReader& node, Types& outputs) {
  CheckSameElement(node);
  if (!HasSpatial(node) || node.rank(1) != node.rank(0)) {
    node.Refuse("W has ", node.rank(1), " dimensions, but X has ", node.rank(0), ".");
    return;
  }
  const Sizes& w = node.sizes(1);
  const int64_t groups = node.Int("group", 1);
  if (groups < 1 || groups > kMostWindow || w[0] % groups != 0) {
    node.Refuse("group (", groups, ") does not divide its ", w[0], " channels.");
    return;
  }
  CheckChannels(node, w[0], "W has");
  if (node.HasAttribute("output_shape") || node.String("auto_pad", "NOTSET") != "NOTSET") {
    node.Unsupported("output_shape and auto_pad are not supported.");
  }
  const Window window = WindowOf(node, Sizes(w.begin() + 2, w.end()));
  const std::vector<int64_t> output_padding =
      PerDimension(node, "output_padding", w.size() - 2, 0, 0);
  if (!node.ok()) return;
  Sizes sizes = {node.sizes(0)[0], w[1] * groups};
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    sizes.push_back(window.strides[d] * (node.sizes(0)[d + 2] - 1) + output_padding[d] +
                    (window.kernel[d] - 1) * window.dilations[d] + 1 - window.start_padding[d] -
                    window.end_padding[d]);
  }
  outputs = {{node.element(0), std::move(sizes)}};
}

void InferPool(NodeReader& node, Types& outputs) {
  if (!HasSpatial(node)) return;
  if (!node.HasAttribute("kernel_shape")) node.Refuse("kernel_shape is not given.");
  const Window window = WindowOf(node, {});
  if (!node.ok()) return;
  Sizes sizes = WindowSizes(node, window, node.Int("ceil_mode", 0) != 0);
  sizes.insert(sizes.begin(), {node.sizes(0)[0], node.sizes(0)[1]});
  outputs = {{node.element(0), sizes}, {ElementType::kInt64, sizes}};
}

void InferAlongAxis(NodeReader& node, Types& outputs) {
  node.Axis(node.Int("axis", -1), node.rank(0));
  outputs = {node.input(0).type};
}

void InferInstanceNormalization(NodeReader& node, Types& outputs) {
  CheckSameElement(node);
  if (node.rank(0) < 3) node.Refuse("its input has ", node.rank(0), " dimensions, less than 3.");
  for (size_t i = 1; i < 3 && node.ok(); ++i) {
    if (node.sizes(i) == Sizes{node.sizes(0)[1]}) continue;
    node.Refuse("input ", i, " is ", ToString(node.input(i).type), ", but input 0 has ",
                node.sizes(0)[1], " channels.");
  }
  outputs = {node.input(0).type};
}

void InferLayerNormalization(NodeReader& node, Types& outputs) {
  CheckSameElement(node);
  node.Axis(node.Int("axis", -1), node.rank(0));
  const Sizes& sizes = node.sizes(0);
  for (size_t i = 1; i < node.input_count() && node.ok(); ++i) {
    if (!node.has(i)) continue;
    const Sizes& factor = node.sizes(i);
    bool fits = factor.size() <= sizes.size();
    for (size_t d = 1; fits && d <= factor.size(); ++d) {
      const int64_t size = factor[factor.size() - d];
      fits = size == 1 || size == sizes[sizes.size() - d];
    }
    if (fits) continue;
    node.Refuse("input ", i, " (", ToString(node.input(i).type),
                ") does not broadcast to input 0 (", ToString(node.input(0).type), ").");
  }
  outputs = {node.input(0).type};
}

void InferLrn(NodeReader& node, Types& outputs) {
  const int64_t size = node.Int("size", 0);
  if (node.rank(0) < 3 || size < 1 || size > 65535) {
    node.Refuse("size (", size, ") is not from 1 to 65535, or its input has ", node.rank(0),
                " dimensions, less than 3.");
  }
  outputs = {node.input(0).type};
}

}  // namespace opmill::onnx
