#include "kernels/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/onnx/elements.h"
#include "kernels/onnx/infer.h"

namespace opmill::onnx {
namespace {

size_t Count(Sizes::const_iterator begin, Sizes::const_iterator end) {
  return static_cast<size_t>(ElementCount(Sizes(begin, end)).value_or(0));
}
size_t Count(const Sizes& sizes) { return Count(sizes.begin(), sizes.end()); }

std::vector<size_t> Strides(const Sizes& sizes) {
  std::vector<size_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * static_cast<size_t>(sizes[d]);
  }
  return strides;
}

// Calls visit(position, coordinate) for every element in row-major order, until the work is
// abandoned.
template <typename Visit>
void ForEach(const NodeReader& node, const Sizes& sizes, Visit visit) {
  std::vector<int64_t> at(sizes.size(), 0);
  const size_t count = Count(sizes);
  for (size_t position = 0; position < count && !node.is_abandoned_at(position); ++position) {
    visit(position, at);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

// As the operator cast: floats to integers are truncated and saturated, NaN is 0.
template <typename To, typename From>
To Convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;
    const double least = static_cast<double>(std::numeric_limits<To>::min());
    const double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (x <= least) return std::numeric_limits<To>::min();
    if (x >= above) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(x);
}

}  // namespace

void FoldCast(NodeReader& node, FoldedBytes& outputs) {
  const ElementType from = node.element(0);
  const ElementType to = node.output(0).element;
  const char* const bytes = node.input(0).constant->data();
  const auto convert = [&](auto zero) {
    using From = decltype(zero);
    const size_t count = Count(node.sizes(0));
    for (size_t i = 0; i < count && !node.is_abandoned_at(i); ++i) {
      const From x = LoadNumber<From>(from, bytes, i);
      const auto store = [&](auto y) {
        std::memcpy(outputs[0].data() + i * sizeof y, &y, sizeof y);
      };
      if (to == ElementType::kBool) {
        store(static_cast<uint8_t>(x != 0));
      } else if (to == ElementType::kFloat16) {
        store(FloatToHalf(static_cast<float>(x)));
      } else {
        VisitType(to, [&](auto y) { store(Convert<decltype(y)>(x)); });
      }
    }
  };
  if (from == ElementType::kFloat16) return convert(float());
  VisitType(from, convert);
}

void FoldConcat(NodeReader& node, FoldedBytes& outputs) {
  const size_t axis = node.Axis(node.Int("axis", 0), node.rank(0));
  const size_t element = ElementBytes(node.element(0));
  const Sizes& sizes = node.output(0).sizes;
  const size_t rows = Count(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(axis));
  char* to = outputs[0].data();
  for (size_t row = 0; row < rows && !node.is_abandoned(); ++row) {
    for (size_t i = 0; i < node.input_count(); ++i) {
      const Sizes& part = node.sizes(i);
      const size_t bytes = Count(part.begin() + static_cast<ptrdiff_t>(axis), part.end()) * element;
      std::copy_n(node.input(i).constant->data() + row * bytes, bytes, to);
      to += bytes;
    }
  }
}

void FoldGather(NodeReader& node, FoldedBytes& outputs) {
  const size_t axis = node.Axis(node.Int("axis", 0), node.rank(0));
  const std::vector<int64_t> indices = node.Integers(1);
  const Sizes& data = node.sizes(0);
  const auto middle = data.begin() + static_cast<ptrdiff_t>(axis);
  const size_t rows = Count(data.begin(), middle);
  const size_t bytes = Count(middle + 1, data.end()) * ElementBytes(node.element(0));
  const int64_t size = data[axis];
  char* to = outputs[0].data();
  for (size_t row = 0; row < rows && !node.is_abandoned(); ++row) {
    for (const int64_t index : indices) {
      if (index < -size || index >= size) {
        return node.Refuse("index ", index, " is not from ", -size, " to ", size - 1, ".");
      }
      const size_t from =
          row * static_cast<size_t>(size) + static_cast<size_t>(index < 0 ? index + size : index);
      to = std::copy_n(node.input(0).constant->data() + from * bytes, bytes, to);
    }
  }
}

void FoldNonZero(NodeReader& node, FoldedBytes& outputs) {
  const std::vector<double> numbers = node.Numbers(0);
  const size_t count = static_cast<size_t>(node.output(0).sizes[1]);
  size_t found = 0;
  ForEach(node, node.sizes(0), [&](size_t position, const std::vector<int64_t>& at) {
    if (numbers[position] == 0) return;
    for (size_t d = 0; d < at.size(); ++d) {
      std::memcpy(outputs[0].data() + (d * count + found) * sizeof at[d], &at[d], sizeof at[d]);
    }
    ++found;
  });
}

void FoldPad(NodeReader& node, FoldedBytes& outputs) {
  const std::string mode = node.String("mode", "constant");
  if (mode != "constant" || node.has(3)) return node.Unsupported("mode ", mode);
  const std::vector<int64_t> pads = node.Integers(1);
  const size_t element = ElementBytes(node.element(0));
  const Sizes& sizes = node.sizes(0);
  const std::vector<size_t> strides = Strides(sizes);
  std::string fill(element, '\0');
  if (node.has(2) && node.input(2).constant->size() >= element) {
    fill = node.input(2).constant->substr(0, element);
  }
  ForEach(node, node.output(0).sizes, [&](size_t position, const std::vector<int64_t>& at) {
    size_t from = 0;
    bool is_inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t x = at[d] - pads[d];
      is_inside = is_inside && x >= 0 && x < sizes[d];
      if (is_inside) from += static_cast<size_t>(x) * strides[d];
    }
    std::copy_n(is_inside ? node.input(0).constant->data() + from * element : fill.data(), element,
                outputs[0].data() + position * element);
  });
}

void FoldRange(NodeReader& node, FoldedBytes& outputs) {
  if (node.element(0) == ElementType::kFloat16) return node.Unsupported("its type is FLOAT16.");
  VisitType(node.element(0), [&](auto zero) {
    using T = decltype(zero);
    const T start = LoadNumber<T>(node.element(0), node.input(0).constant->data(), 0);
    const T delta = LoadNumber<T>(node.element(0), node.input(2).constant->data(), 0);
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // which may wrap
    const size_t count = Count(node.output(0).sizes);
    for (size_t i = 0; i < count && !node.is_abandoned_at(i); ++i) {
      const T x = static_cast<T>(static_cast<Wide>(start) +
                                 static_cast<Wide>(i) * static_cast<Wide>(delta));
      std::memcpy(outputs[0].data() + i * sizeof x, &x, sizeof x);
    }
  });
}

void FoldScatterNd(NodeReader& node, FoldedBytes& outputs) {
  if (node.String("reduction", "none") != "none") return node.Unsupported("reduction");
  const Sizes& data = node.sizes(0);
  const Sizes& shape = node.sizes(1);
  const std::vector<int64_t> indices = node.Integers(1);
  const int64_t depth = shape.empty() ? 0 : shape.back();
  if (depth < 1 || depth > node.rank(0)) return node.Refuse("its indices have depth ", depth, ".");
  const std::vector<size_t> strides = Strides(data);
  const size_t bytes = Count(data.begin() + depth, data.end()) * ElementBytes(node.element(0));
  const size_t count = indices.size() / static_cast<size_t>(depth);
  if (node.input(2).constant->size() != count * bytes) {
    return node.Refuse("updates are ", ToString(node.input(2).type), ".");
  }
  outputs[0] = *node.input(0).constant;
  for (size_t i = 0; i < count && !node.is_abandoned_at(i); ++i) {
    size_t to = 0;
    for (size_t d = 0; d < static_cast<size_t>(depth); ++d) {
      const int64_t index = indices[i * static_cast<size_t>(depth) + d];
      const int64_t at = index < 0 ? index + data[d] : index;
      if (at < 0 || at >= data[d]) return node.Refuse("index ", index, " is outside of data.");
      to += static_cast<size_t>(at) * strides[d];
    }
    std::copy_n(node.input(2).constant->data() + i * bytes, bytes,
                outputs[0].data() + to * ElementBytes(node.element(0)));
  }
}

void FoldSlice(NodeReader& node, FoldedBytes& outputs) {
  const std::vector<SliceRange> ranges = SliceRanges(node);
  const std::vector<size_t> strides = Strides(node.sizes(0));
  const size_t element = ElementBytes(node.element(0));
  ForEach(node, node.output(0).sizes, [&](size_t position, const std::vector<int64_t>& at) {
    size_t from = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      from += static_cast<size_t>(ranges[d].start + at[d] * ranges[d].step) * strides[d];
    }
    std::copy_n(node.input(0).constant->data() + from * element, element,
                outputs[0].data() + position * element);
  });
}

}  // namespace opmill::onnx
