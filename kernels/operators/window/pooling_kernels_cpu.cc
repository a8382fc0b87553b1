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

// Calls visit(i, size) for parts of `count` elements, whose sizes are constants: loops over them
// are vectorized, also those of short rows.
template <class Visit>
HWY_INLINE void ForEachPart(size_t count, const Visit& visit) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) visit(i, std::integral_constant<size_t, 16>());
  if ((count & 8) != 0) visit(i, std::integral_constant<size_t, 8>());
  i += count & 8;
  if ((count & 4) != 0) visit(i, std::integral_constant<size_t, 4>());
  i += count & 4;
  for (; i < count; ++i) visit(i, std::integral_constant<size_t, 1>());
}

template <class Policy>
void Join(const void* from, void* to, size_t count) {
  auto* HWY_RESTRICT columns = static_cast<typename Policy::Value*>(to);
  if (from == nullptr) {
    std::fill_n(columns, count, Policy::kIdentity);
    return;
  }
  const auto* HWY_RESTRICT elements = static_cast<const typename Policy::Element*>(from);
  ForEachPart(count, [&](size_t i, auto size) HWY_ATTR {
    for (size_t j = 0; j < size; ++j) {
      columns[i + j] = Policy::Join(columns[i + j], Policy::Of(elements[i + j]));
    }
  });
}

// `kStep` is that of the row, or 0 for any other.
template <class Policy, size_t kStep>
HWY_INLINE void PoolSteps(const PoolingRow& row) {
  using Value = typename Policy::Value;
  Value* HWY_RESTRICT values = static_cast<Value*>(row.values);
  const size_t step = kStep == 0 ? row.step : kStep;
  std::fill_n(values, row.count, Policy::kIdentity);
  for (size_t k = 0; k < row.window; ++k) {
    const Value* HWY_RESTRICT columns = static_cast<const Value*>(row.columns) + k * row.dilation;
    ForEachPart(row.count, [&](size_t i, auto size) HWY_ATTR {
      for (size_t j = 0; j < size; ++j) {
        values[i + j] = Policy::Join(values[i + j], columns[(i + j) * step]);
      }
    });
  }
}

template <class Policy>
void Pool(const PoolingRow& row) {
  if (row.step == 1) {
    PoolSteps<Policy, 1>(row);
  } else if (row.step == 2) {
    PoolSteps<Policy, 2>(row);
  } else {
    PoolSteps<Policy, 0>(row);
  }
}

template <class Policy>
void Finish(const void* from, const PoolingDivisors& divisors, size_t count, void* to) {
  const auto* HWY_RESTRICT values = static_cast<const typename Policy::Value*>(from);
  auto* HWY_RESTRICT results = static_cast<typename Policy::Element*>(to);
  const float divisor = divisors.divisor;
  if (divisors.counts == nullptr) {
    ForEachPart(count, [&](size_t i, auto size) HWY_ATTR {
      for (size_t j = 0; j < size; ++j) results[i + j] = Policy::Result(values[i + j], divisor);
    });
    return;
  }
  const float* HWY_RESTRICT counts = divisors.counts;
  ForEachPart(count, [&](size_t i, auto size) HWY_ATTR {
    for (size_t j = 0; j < size; ++j) {
      const float elements = divisor * counts[i + j];
      results[i + j] = Policy::Result(values[i + j], elements < 1 ? 1.0f : elements);
    }
  });
}

template <class Policy>
PoolingKernels KernelsOf() {
  return {&Join<Policy>, &Pool<Policy>, &Finish<Policy>};
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
