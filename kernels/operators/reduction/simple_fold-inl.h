// What the kernels of folds share. Included once per instruction set.
// NOLINTBEGIN
#if defined(OPMILL_KERNELS_OPERATORS_REDUCTION_SIMPLE_FOLD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OPMILL_KERNELS_OPERATORS_REDUCTION_SIMPLE_FOLD_INL_H_
#undef OPMILL_KERNELS_OPERATORS_REDUCTION_SIMPLE_FOLD_INL_H_
#else
#define OPMILL_KERNELS_OPERATORS_REDUCTION_SIMPLE_FOLD_INL_H_
#endif
// NOLINTEND

#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/vectors-inl.h"
#include "kernels/operators/reduction/fold_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

// How far ahead of the loads a row is prefetched, possibly beyond its end: the processor itself
// does not look past the end of a page. On a Xeon (Sapphire Rapids), 2 threads, share of a plain
// read: l2 of rows of 1024 FLOAT32 0.78 without, 1.06, 1.12, 1.14 and 0.82 with 512 to 4096 bytes;
// of 8192 elements 0.95 without, 1.28 with 1024, 1.26 with 2048; max 1.04 and 1.20; sum does not
// change.
inline constexpr size_t kPrefetchBytes = 2048;
// Rows of columns up to this size are prefetched too: they end with their page, where the processor
// stops. Longer ones would displace the states (maximum of [8192,8192]: 11 ms, with it 18).
inline constexpr size_t kPrefetchedRow = 4096;

template <class T>
HWY_INLINE T* Plane(void* states, size_t width, size_t bytes_before) {
  return reinterpret_cast<T*>(static_cast<uint8_t*>(states) + PaddedWidth(width) * bytes_before);
}
template <class T>
HWY_INLINE const T* Plane(const void* states, size_t width, size_t bytes_before) {
  return Plane<T>(const_cast<void*>(states), width, bytes_before);
}

// Folds in which all elements play the same role. A Policy has
//   T, Part, Acc            the element, a vector of elements, a vector of states
//   Unit()                  the number of elements in a Part
//   Load, Join              make a Part from elements, or from two Parts
//   Fold                    folds a Part into an Acc
//   Pad                     a neutral element to fill the rest of a row
//   Identity, LoadState, StoreState, MergeLane, Finish, kStateBytes
//   JoinLanes               optional: joins the lanes of an Acc, in every lane
template <class Policy>
struct SimpleFold {
  using T = typename Policy::T;

  // Keeps eight loads in flight, with one accumulator step for all of them.
  template <class At>
  static HWY_INLINE typename Policy::Part JoinEight(At at) {
    const auto a = Policy::Join(Policy::Load(at(0)), Policy::Load(at(1)));
    const auto b = Policy::Join(Policy::Load(at(2)), Policy::Load(at(3)));
    const auto c = Policy::Join(Policy::Load(at(4)), Policy::Load(at(5)));
    const auto d = Policy::Join(Policy::Load(at(6)), Policy::Load(at(7)));
    return Policy::Join(Policy::Join(a, b), Policy::Join(c, d));
  }

  static void Init(void* states, size_t width, uint64_t /*position*/) {
    for (size_t i = 0; i < PaddedWidth(width); i += Policy::Unit()) {
      Policy::StoreState(Policy::Identity(), states, width, i);
    }
  }

  static void Row(const void* elements, size_t count, uint64_t /*position*/, void* states,
                  size_t width, size_t at) {
    const T* from = static_cast<const T*>(elements);
    const size_t n = Policy::Unit();
    auto acc = Policy::Identity();
    size_t i = 0;
    for (; i + 8 * n <= count; i += 8 * n) {
      const T* p = from + i;
      for (size_t line = 0; line < 8 * n * sizeof(T); line += 64) {
        hwy::Prefetch(reinterpret_cast<const uint8_t*>(p) + kPrefetchBytes + line);
      }
      acc = Policy::Fold(acc, JoinEight([&](size_t j) HWY_ATTR { return p + j * n; }));
    }
    for (; i + n <= count; i += n) acc = Policy::Fold(acc, Policy::Load(from + i));
    if (i < count) {
      HWY_ALIGN T rest[kStateStep];
      for (size_t j = 0; j < n; ++j) rest[j] = Policy::Pad(from);
      std::memcpy(rest, from + i, (count - i) * sizeof(T));
      acc = Policy::Fold(acc, Policy::Load(rest));
    }
    size_t lane_count = n;
    if constexpr (requires { Policy::JoinLanes(acc); }) {
      acc = Policy::JoinLanes(acc);
      lane_count = 1;
    }
    alignas(64) uint8_t lanes[kStateStep * Policy::kStateBytes];
    Policy::StoreState(acc, lanes, 1, 0);
    for (size_t lane = 0; lane < lane_count; ++lane) {
      Policy::MergeLane(states, width, at, lanes, 1, lane);
    }
  }

  static void Columns(const void* const* rows, size_t row_count, uint64_t /*position*/,
                      void* states, size_t width) {
    const size_t n = Policy::Unit();
    const size_t whole = width / n * n;
    const bool prefetches = width * sizeof(T) <= kPrefetchedRow;
    size_t r = 0;
    for (; r + 8 <= row_count; r += 8) {
      const T* p[8];
      const T* next[8];
      for (size_t j = 0; j < 8; ++j) {
        p[j] = static_cast<const T*>(rows[r + j]);
        next[j] = static_cast<const T*>(rows[std::min(r + 8 + j, row_count - 1)]);
      }
      for (size_t i = 0; i < whole; i += n) {
        if (prefetches && i * sizeof(T) % 64 == 0) {
          for (size_t j = 0; j < 8; ++j) hwy::Prefetch(next[j] + i);
        }
        const auto part = JoinEight([&](size_t j) HWY_ATTR { return p[j] + i; });
        Policy::StoreState(Policy::Fold(Policy::LoadState(states, width, i), part), states, width,
                           i);
      }
    }
    const size_t first = r;
    if (first < row_count) {
      const T* p[8];
      const size_t rest = row_count - first;
      for (size_t j = 0; j < rest; ++j) p[j] = static_cast<const T*>(rows[first + j]);
      for (size_t i = 0; i < whole; i += n) {
        auto acc = Policy::LoadState(states, width, i);
        for (size_t j = 0; j < rest; ++j) acc = Policy::Fold(acc, Policy::Load(p[j] + i));
        Policy::StoreState(acc, states, width, i);
      }
    }
    if (whole < width) LastColumns(rows, row_count, first, states, width, whole);
  }

  // The same operations in the same order, for the last columns, which fill less than a vector.
  static HWY_NOINLINE void LastColumns(const void* const* rows, size_t row_count, size_t first,
                                       void* states, size_t width, size_t whole) {
    HWY_ALIGN T rest[8][kStateStep] = {};
    auto acc = Policy::LoadState(states, width, whole);
    const auto copy = [&](size_t r, size_t j) HWY_ATTR {
      std::memcpy(rest[j], static_cast<const T*>(rows[r]) + whole, (width - whole) * sizeof(T));
    };
    for (size_t r = 0; r < first; r += 8) {
      for (size_t j = 0; j < 8; ++j) copy(r + j, j);
      acc = Policy::Fold(acc, JoinEight([&](size_t j) HWY_ATTR { return rest[j]; }));
    }
    for (size_t r = first; r < row_count; ++r) {
      copy(r, 0);
      acc = Policy::Fold(acc, Policy::Load(rest[0]));
    }
    Policy::StoreState(acc, states, width, whole);
  }

  static void Merge(void* into, const void* from, size_t width) {
    for (size_t i = 0; i < width; ++i) Policy::MergeLane(into, width, i, from, width, i);
  }

  static FoldKernels Kernels() {
    return {Policy::kStateBytes, Policy::kStateBytes, Init, Row, Columns, Merge, Policy::Finish};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
