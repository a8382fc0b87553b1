// Loops that the compiler vectorizes, once per instruction set.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/operators/window/pooling_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/window/pooling_kernels_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

template <typename T>
struct IntegerMax {
  using Element = T;
  using Value = T;
  static constexpr Value kIdentity = std::numeric_limits<T>::min();
  static HWY_INLINE Value Of(Element x) { return x; }
  static HWY_INLINE Value Join(Value a, Value b) { return a < b ? b : a; }
  static HWY_INLINE Element Result(Value value, float) { return value; }
};

// Of floats as bits: integers in the order of the numbers. NaN is the largest.
template <typename T, T kInfinity, T kNan>
struct FloatMax {
  using Element = T;
  using Value = T;
  static constexpr T kMagnitude = std::numeric_limits<T>::max();
  static constexpr Value kIdentity = static_cast<T>(~kInfinity);  // of -inf
  static HWY_INLINE T Flip(T x) { return static_cast<T>(x ^ ((x < 0 ? -1 : 0) & kMagnitude)); }
  static HWY_INLINE Value Of(Element x) {
    return (x & kMagnitude) > kInfinity ? kMagnitude : Flip(x);
  }
  static HWY_INLINE Value Join(Value a, Value b) { return a < b ? b : a; }
  static HWY_INLINE Element Result(Value value, float) {
    return value == kMagnitude ? kNan : Flip(value);
  }
};

struct Average {
  using Element = float;
  using Value = float;
  static constexpr Value kIdentity = 0;
  static HWY_INLINE Value Of(Element x) { return x; }
  static HWY_INLINE Value Join(Value a, Value b) { return a + b; }
  static HWY_INLINE Element Result(Value value, float count) { return value / count; }
};

// The elements of windows that are a column of any result.
struct Elements {
  int64_t first = 0;
  int64_t end = 0;
};
HWY_INLINE Elements ElementsOf(const PoolingRow& row) {
  const int64_t last = row.start + (static_cast<int64_t>(row.count) - 1) * row.step;
  const int64_t to_end = static_cast<int64_t>(row.column_count) - 1 - row.start;
  Elements elements;
  elements.first = last < 0 ? (-last + row.dilation - 1) / row.dilation : 0;
  elements.end = to_end < 0 ? 0 : std::min(to_end / row.dilation + 1, row.window);
  return elements;
}

// The results whose element k is a column, from `first` on.
struct Reached {
  size_t first = 0;
  size_t end = 0;
  int64_t column = 0;  // of result 0
};
HWY_INLINE Reached ReachedBy(const PoolingRow& row, int64_t k) {
  const int64_t column = row.start + k * row.dilation;
  const int64_t columns = static_cast<int64_t>(row.column_count);
  if (column >= columns) return {};
  const int64_t first = column < 0 ? (-column + row.step - 1) / row.step : 0;
  const int64_t end =
      std::min<int64_t>((columns - 1 - column) / row.step + 1, static_cast<int64_t>(row.count));
  if (first >= end) return {};
  return {static_cast<size_t>(first), static_cast<size_t>(end), column};
}

template <class Policy, int64_t kStep>
HWY_INLINE void JoinSteps(const typename Policy::Value* HWY_RESTRICT columns, size_t first,
                          size_t end, typename Policy::Value* HWY_RESTRICT values) {
  for (size_t i = first; i < end; ++i) {
    values[i] = Policy::Join(values[i], columns[static_cast<int64_t>(i) * kStep]);
  }
}

template <class Policy>
void Join(const void* from, void* to, size_t count) {
  auto* HWY_RESTRICT columns = static_cast<typename Policy::Value*>(to);
  if (from == nullptr) {
    std::fill_n(columns, count, Policy::kIdentity);
    return;
  }
  const auto* HWY_RESTRICT elements = static_cast<const typename Policy::Element*>(from);
  for (size_t i = 0; i < count; ++i) {
    columns[i] = Policy::Join(columns[i], Policy::Of(elements[i]));
  }
}

template <class Policy>
void Pool(const PoolingRow& row) {
  using Element = typename Policy::Element;
  using Value = typename Policy::Value;
  Value* HWY_RESTRICT values = static_cast<Value*>(row.values);
  std::fill_n(values, row.count, Policy::kIdentity);
  const Elements window = ElementsOf(row);
  bool all_reached = window.first == 0 && window.end == row.window;
  for (int64_t k = window.first; k < window.end; ++k) {
    const Reached reached = ReachedBy(row, k);
    all_reached = all_reached && reached.first == 0 && reached.end == row.count;
    const Value* const columns = static_cast<const Value*>(row.columns) + reached.column;
    if (row.step == 1) {
      JoinSteps<Policy, 1>(columns, reached.first, reached.end, values);
    } else if (row.step == 2) {
      JoinSteps<Policy, 2>(columns, reached.first, reached.end, values);
    } else {
      for (size_t i = reached.first; i < reached.end; ++i) {
        values[i] = Policy::Join(values[i], columns[static_cast<int64_t>(i) * row.step]);
      }
    }
  }
  Element* HWY_RESTRICT results = static_cast<Element*>(row.results);
  const float in_column = static_cast<float>(row.column_elements);
  if (!std::is_same_v<Policy, Average> || row.divisor != 0 || all_reached) {
    const float count = row.divisor != 0
                            ? static_cast<float>(row.divisor)
                            : std::max(1.0f, in_column * static_cast<float>(row.window));
    for (size_t i = 0; i < row.count; ++i) results[i] = Policy::Result(values[i], count);
    return;
  }
  std::fill_n(row.counts, row.count, 0u);
  for (int64_t k = window.first; k < window.end; ++k) {
    const Reached reached = ReachedBy(row, k);
    for (size_t i = reached.first; i < reached.end; ++i) ++row.counts[i];
  }
  for (size_t i = 0; i < row.count; ++i) {
    const float count = in_column * static_cast<float>(row.counts[i]);
    results[i] = Policy::Result(values[i], count < 1 ? 1.0f : count);
  }
}

template <class Policy>
PoolingKernels KernelsOf() {
  return {&Join<Policy>, &Pool<Policy>};
}

PoolingKernels MaxKernels(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return KernelsOf<FloatMax<int16_t, 0x7C00, 0x7E00>>();
    case DataType::kInt64:
      return KernelsOf<IntegerMax<int64_t>>();
    case DataType::kInt32:
      return KernelsOf<IntegerMax<int32_t>>();
    case DataType::kInt16:
      return KernelsOf<IntegerMax<int16_t>>();
    case DataType::kInt8:
      return KernelsOf<IntegerMax<int8_t>>();
    case DataType::kUint64:
      return KernelsOf<IntegerMax<uint64_t>>();
    case DataType::kUint32:
      return KernelsOf<IntegerMax<uint32_t>>();
    case DataType::kUint16:
      return KernelsOf<IntegerMax<uint16_t>>();
    case DataType::kUint8:
      return KernelsOf<IntegerMax<uint8_t>>();
    default:
      break;
  }
  return KernelsOf<FloatMax<int32_t, 0x7F80'0000, 0x7FC0'0000>>();
}

PoolingKernels AverageKernels() { return KernelsOf<Average>(); }

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(MaxKernels);
HWY_EXPORT(AverageKernels);

PoolingKernels MaxPoolingKernels(DataType type) { return HWY_DYNAMIC_DISPATCH(MaxKernels)(type); }
PoolingKernels AveragePoolingKernels() { return HWY_DYNAMIC_DISPATCH(AverageKernels)(); }

}  // namespace opmill
#endif  // HWY_ONCE
