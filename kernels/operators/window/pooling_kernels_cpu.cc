// The processor's kernels of pooling, once per instruction set.
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
namespace hn = hwy::HWY_NAMESPACE;

// A policy makes values of elements, joins values, and makes results of them.
template <typename T>
struct IntegerMax {
  using Value = T;
  static constexpr T kIdentity = std::numeric_limits<T>::min();
  template <class V>
  static HWY_INLINE V Of(V x) {
    return x;
  }
  template <class V>
  static HWY_INLINE V Join(V a, V b) {
    return hn::Max(a, b);
  }
  template <class V>
  static HWY_INLINE V Result(V value, V /*count*/) {
    return value;
  }
};

// Of floats as bits: integers in the order of the numbers. NaN is the largest.
template <typename T, T kInfinity, T kNan>
struct FloatMax {
  using Value = T;
  static constexpr T kMagnitude = std::numeric_limits<T>::max();
  static constexpr T kIdentity = static_cast<T>(~kInfinity);  // of -inf
  template <class V>
  static HWY_INLINE V Flip(V x) {
    return hn::Xor(x, hn::And(hn::BroadcastSignBit(x), hn::Set(hn::DFromV<V>(), kMagnitude)));
  }
  template <class V>
  static HWY_INLINE V Of(V x) {
    const hn::DFromV<V> d;
    const V largest = hn::Set(d, kMagnitude);
    return hn::IfThenElse(hn::Gt(hn::And(x, largest), hn::Set(d, kInfinity)), largest, Flip(x));
  }
  template <class V>
  static HWY_INLINE V Join(V a, V b) {
    return hn::Max(a, b);
  }
  template <class V>
  static HWY_INLINE V Result(V value, V /*count*/) {
    const hn::DFromV<V> d;
    return hn::IfThenElse(hn::Eq(value, hn::Set(d, kMagnitude)), hn::Set(d, kNan), Flip(value));
  }
};

struct Average {
  using Value = float;
  static constexpr float kIdentity = 0;
  template <class V>
  static HWY_INLINE V Of(V x) {
    return x;
  }
  template <class V>
  static HWY_INLINE V Join(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V Result(V value, V count) {
    return hn::Div(value, count);
  }
};

// `count` elements; reads no others.
template <class D>
HWY_INLINE hn::Vec<D> LoadSome(D d, const hn::TFromD<D>* from, size_t count) {
  return count == hn::Lanes(d) ? hn::LoadU(d, from) : hn::MaskedLoad(hn::FirstN(d, count), d, from);
}

template <class D>
HWY_INLINE void StoreSome(hn::Vec<D> value, D d, hn::TFromD<D>* to, size_t count) {
  if (count == hn::Lanes(d)) {
    hn::StoreU(value, d, to);
  } else {
    hn::BlendedStore(value, hn::FirstN(d, count), d, to);
  }
}

// Calls visit(i, d, lanes) for the elements from i on: vectors, then what is left, as a part of a
// vector, or in vectors of half the size, and so on, if parts would take more than one instruction.
template <class D, class Visit>
HWY_INLINE void ForEachVector(D d, size_t i, size_t count, const Visit& visit) {
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) visit(i, d, hn::Lanes(d));
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if (i < count) visit(i, d, count - i);
#else
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (i < count) ForEachVector(hn::Half<D>(), i, count, visit);
  }
#endif
}

template <class Policy, class Visit>
HWY_INLINE void ForEachVector(size_t count, const Visit& visit) {
  ForEachVector(hn::ScalableTag<typename Policy::Value>(), 0, count, visit);
}

template <class Policy>
HWY_INLINE void JoinLine(const PoolingRows& rows, size_t line, void* to) {
  using Value = typename Policy::Value;
  const auto* const* const elements = reinterpret_cast<const Value* const*>(rows.rows);
  const size_t first = line * rows.line_stride;
  auto* const columns = static_cast<Value*>(to) + rows.before;
  const hn::ScalableTag<Value> whole;
  const auto clear = [&](Value* from, size_t count) HWY_ATTR {
    for (size_t i = 0; i < count; i += hn::Lanes(whole)) {
      hn::StoreU(hn::Set(whole, Policy::kIdentity), whole, from + i);
    }
  };
  if (!rows.adds) clear(static_cast<Value*>(to), rows.before);
  ForEachVector<Policy>(rows.count, [&](size_t i, auto d, size_t lanes) HWY_ATTR {
    auto value = rows.adds ? hn::LoadU(d, columns + i) : hn::Set(d, Policy::kIdentity);
    for (size_t r = 0; r < rows.row_count; ++r) {
      value = Policy::Join(value, Policy::Of(LoadSome(d, elements[r] + first + i, lanes)));
    }
    hn::StoreU(value, d, columns + i);
  });
  clear(columns + rows.count, rows.after);
}

template <class Policy>
void Join(const PoolingRows& rows, void* to) {
  const size_t columns = rows.before + rows.count + rows.after;
  for (size_t line = 0; line < rows.lines; ++line) {
    JoinLine<Policy>(rows, line, static_cast<typename Policy::Value*>(to) + line * columns);
  }
}

// Each kStep-th value, from the first on. Reads kStep values for each lane.
template <size_t kStep, class D>
HWY_INLINE hn::Vec<D> LoadSteps(D d, const hn::TFromD<D>* from) {
  const hn::Vec<D> low = hn::LoadU(d, from);
#if HWY_TARGET != HWY_SCALAR  // whose vectors have one lane
  if constexpr (kStep == 2) return hn::ConcatEven(d, hn::LoadU(d, from + hn::Lanes(d)), low);
#endif
  return low;
}

// `kStep` is that of the row, 1 or 2.
template <class Policy, size_t kStep>
HWY_INLINE void PoolSteps(const PoolingRow& row) {
  using Value = typename Policy::Value;
  const auto* const columns = static_cast<const Value*>(row.columns);
  auto* const values = static_cast<Value*>(row.values);
  // Vectors of less than 16 bytes cannot be concatenated on all targets; `columns` has room for
  // more.
  const hn::ScalableTag<Value> d;
  for (size_t i = 0; i < row.count; i += hn::Lanes(d)) {
    auto value = hn::Set(d, Policy::kIdentity);
    for (size_t k = 0; k < row.window; ++k) {
      value = Policy::Join(value, LoadSteps<kStep>(d, columns + i * kStep + k * row.dilation));
    }
    hn::StoreU(value, d, values + i);
  }
}

// Of any step.
template <class Policy>
void PoolEach(const PoolingRow& row) {
  using Value = typename Policy::Value;
  const hn::CappedTag<Value, 1> d;
  for (size_t i = 0; i < row.count; ++i) {
    const Value* column = static_cast<const Value*>(row.columns) + i * row.step;
    auto value = hn::Set(d, Policy::kIdentity);
    for (size_t k = 0; k < row.window; ++k, column += row.dilation) {
      value = Policy::Join(value, hn::LoadU(d, column));
    }
    hn::StoreU(value, d, static_cast<Value*>(row.values) + i);
  }
}

template <class Policy>
void Pool(const PoolingRow& row) {
  if (row.step == 1) {
    PoolSteps<Policy, 1>(row);
  } else if (row.step == 2) {
    PoolSteps<Policy, 2>(row);
  } else {
    PoolEach<Policy>(row);
  }
}

template <class Policy>
void Finish(const void* from, const PoolingDivisors& divisors, const PoolingLines& lines,
            void* to) {
  using Value = typename Policy::Value;
  const auto divisor = static_cast<Value>(divisors.divisor);
  for (size_t line = 0; line < lines.lines; ++line) {
    const auto* const values = static_cast<const Value*>(from) + line * lines.value_stride;
    auto* const results = static_cast<Value*>(to) + line * lines.result_stride;
    ForEachVector<Policy>(lines.count, [&](size_t i, auto d, size_t lanes) HWY_ATTR {
      auto elements = hn::Set(d, divisor);
      if constexpr (std::is_same_v<Policy, Average>) {
        if (divisors.counts != nullptr) {
          elements =
              hn::Max(hn::Mul(elements, LoadSome(d, divisors.counts + i, lanes)), hn::Set(d, 1.0f));
        }
      }
      StoreSome(Policy::Result(hn::LoadU(d, values + i), elements), d, results + i, lanes);
    });
  }
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
