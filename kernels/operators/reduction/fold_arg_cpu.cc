// argmin, argmax, and the positions of hardmax's ones: all find the greatest of integer keys.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/element_dispatch.h"
#include "kernels/operators/reduction/fold_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/reduction/fold_arg_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/keys-inl.h"
#include "kernels/operators/reduction/simple_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

// A state is the greatest key so far and its position, which is below 2^32.
template <class Keys, bool kLast>
struct ArgFold {
  using T = typename Keys::Key;
  using D = hn::ScalableTag<T>;
  // For elements of 1 or 2 bytes, Columns numbers the rows of one call, with as many bits as an
  // element has, and then merges the result into the states. Other elements have positions of
  // their own size.
  static constexpr bool kLocal = sizeof(T) < 4;
  using P = std::make_unsigned_t<T>;
  using Place = std::conditional_t<kLocal, uint32_t, P>;
  using DP = hn::ScalableTag<P>;
  static constexpr size_t kStateBytes = sizeof(T) + sizeof(Place);
  static constexpr size_t kBlock = 16384 / sizeof(T);  // stays in the L1 cache
  static constexpr size_t kMostRows = 64;              // in one call of Columns
  static constexpr bool kFoldsFloats =
      std::is_same_v<T, int32_t> && Keys::kIsFloat && !Keys::kNanIsLast;

  static T* KeyPlane(void* states, size_t width) {
    return Plane<T>(states, width, kLocal ? sizeof(Place) : 0);
  }
  static Place* PlacePlane(void* states, size_t width) {
    return Plane<Place>(states, width, kLocal ? 0 : sizeof(T));
  }
  static bool Wins(T key, T best) { return kLast ? key >= best : key > best; }

  static void Init(void* states, size_t width, uint64_t position) {
    std::fill_n(KeyPlane(states, width), PaddedWidth(width), hwy::LimitsMin<T>());
    std::fill_n(PlacePlane(states, width), PaddedWidth(width), static_cast<Place>(position));
  }

  // Computes the three extremes of the bits that fold_extreme.cc describes. One of these elements
  // has the greatest key, unless kNanIsLast, where a NaN would hide numbers. Takes three
  // instructions per vector; computing keys takes seven more.
  static HWY_INLINE hn::Vec<D> GreatestOfFloats(const T* from, size_t count) {
    const D d;
    const DP dp;
    const size_t n = hn::Lanes(d);
    auto greatest = hn::Set(d, hwy::LimitsMin<T>());
    auto least = hn::Set(d, hwy::LimitsMax<T>());
    auto farthest = hn::Zero(dp);
    const auto see = [&](size_t i) HWY_ATTR {
      const auto x = hn::LoadU(d, from + i);
      greatest = hn::Max(greatest, x);
      least = hn::Min(least, x);
      farthest = hn::Max(farthest, hn::BitCast(dp, x));
    };
    size_t i = 0;
    for (; i + 4 * n <= count; i += 4 * n) {
      see(i);
      see(i + n);
      see(i + 2 * n);
      see(i + 3 * n);
    }
    for (; i + n <= count; i += n) see(i);
    if (i < count) see(count - n);
    const auto outer = hn::Max(Keys::Of(d, greatest), Keys::Of(d, hn::BitCast(d, farthest)));
    return hn::Max(outer, Keys::Of(d, least));
  }

  static HWY_INLINE T GreatestOf(const T* from, size_t count) {
    const D d;
    const size_t n = hn::Lanes(d);
    auto a = hn::Set(d, hwy::LimitsMin<T>());
    auto b = a;
    size_t i = 0;
    if constexpr (Keys::kIsFloat && !Keys::kNanIsLast) {
      if (count >= n) {
        a = GreatestOfFloats(from, count);
        i = count;
      }
    }
    for (; i + 4 * n <= count; i += 4 * n) {
      const auto x = hn::Max(Keys::Load(d, from + i), Keys::Load(d, from + i + n));
      const auto y = hn::Max(Keys::Load(d, from + i + 2 * n), Keys::Load(d, from + i + 3 * n));
      a = hn::Max(a, x);
      b = hn::Max(b, y);
    }
    for (; i + n <= count; i += n) a = hn::Max(a, Keys::Load(d, from + i));
    if (i < count && count >= n) {
      a = hn::Max(a, Keys::Load(d, from + count - n));
      i = count;
    }
    T greatest;
    if constexpr (sizeof(T) > 1) {
      greatest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
    } else {  // bytes have no such instruction
      HWY_ALIGN T lanes[kStateStep];
      hn::Store(hn::Max(a, b), d, lanes);
      greatest = *std::max_element(lanes, lanes + n);
    }
    for (; i < count; ++i) greatest = std::max(greatest, Keys::Of(from[i]));
    return greatest;
  }

  // The index of an element with this key, which must exist.
  static HWY_INLINE size_t Find(const T* from, size_t count, T key) {
    const D d;
    const size_t n = hn::Lanes(d);
    const auto wanted = hn::Set(d, key);
    if constexpr (kLast) {
      size_t end = count;
      for (; end >= n; end -= n) {
        if (!hn::AllFalse(d, hn::Eq(Keys::Load(d, from + end - n), wanted))) break;
      }
      while (Keys::Of(from[--end]) != key) {
      }
      return end;
    } else {
      size_t i = 0;
      for (; i + n <= count; i += n) {
        const auto equal = hn::Eq(Keys::Load(d, from + i), wanted);
        if (!hn::AllFalse(d, equal)) {
          return i + static_cast<size_t>(hn::FindFirstTrue(d, equal));
        }
      }
      while (Keys::Of(from[i]) != key) ++i;
      return i;
    }
  }

  // Compares the greatest keys of blocks, and searches only the block that has the greatest.
  static void Row(const void* elements, size_t count, uint64_t position, void* states, size_t width,
                  size_t at) {
    const T* from = static_cast<const T*>(elements);
    T& best = KeyPlane(states, width)[at];
    size_t block = count;
    for (size_t i = 0; i < count; i += kBlock) {
      const T greatest = GreatestOf(from + i, std::min(kBlock, count - i));
      if (!Wins(greatest, best)) continue;
      best = greatest;
      block = i;
    }
    if (block == count) return;
    PlacePlane(states, width)[at] = static_cast<Place>(
        position + block + Find(from + block, std::min(kBlock, count - block), best));
  }

  struct Pair {
    hn::Vec<D> key;
    hn::Vec<DP> place;
  };

  static HWY_INLINE Pair Step(Pair best, hn::Vec<D> key, size_t place) {
    const auto places = hn::Set(DP(), static_cast<P>(place));
    if constexpr (kLast) {
      const auto stays = hn::RebindMask(DP(), hn::Gt(best.key, key));
      return {hn::Max(best.key, key), hn::IfThenElse(stays, best.place, places)};
    } else {
      const auto wins = hn::RebindMask(DP(), hn::Gt(key, best.key));
      return {hn::Max(best.key, key), hn::IfThenElse(wins, places, best.place)};
    }
  }

  static void FoldRows(const void* const* rows, size_t row_count, uint64_t position, T* keys,
                       P* places, size_t width) {
    const D d;
    const size_t n = hn::Lanes(d);
    const size_t whole = width / n * n;
    for (size_t r = 0; r < row_count; r += 8) {
      const size_t count = std::min<size_t>(8, row_count - r);
      const T* p[8];
      for (size_t j = 0; j < count; ++j) p[j] = static_cast<const T*>(rows[r + j]);
      const auto fold = [&](size_t i, auto load, auto many) HWY_ATTR {
        Pair best = {hn::Load(d, keys + i), hn::Load(DP(), places + i)};
        if constexpr (decltype(many)::value) {
          HWY_UNROLL(8)
          for (size_t j = 0; j < 8; ++j) best = Step(best, load(j), position + r + j);
        } else {
          for (size_t j = 0; j < count; ++j) best = Step(best, load(j), position + r + j);
        }
        hn::Store(best.key, d, keys + i);
        hn::Store(best.place, DP(), places + i);
      };
      if (count == 8) {
        for (size_t i = 0; i < whole; i += n) {
          fold(
              i, [&](size_t j) HWY_ATTR { return Keys::Load(d, p[j] + i); }, std::true_type());
        }
      } else {
        for (size_t i = 0; i < whole; i += n) {
          fold(
              i, [&](size_t j) HWY_ATTR { return Keys::Load(d, p[j] + i); }, std::false_type());
        }
      }
      if (whole == width) continue;
      fold(
          whole,
          [&](size_t j) HWY_ATTR {
            HWY_ALIGN T rest[kStateStep] = {};
            std::memcpy(rest, p[j] + whole, (width - whole) * sizeof(T));
            return Keys::Load(d, rest);
          },
          std::false_type());
    }
  }

  // Compares floats without converting them to keys, which would take six more instructions per
  // vector. If eight elements of a column contain a NaN, or infinities of both signs, their keys
  // are compared.
  static void FoldFloatRows(const void* const* rows, size_t row_count, uint64_t position, T* keys,
                            P* places, size_t width) {
    const hn::ScalableTag<float> d;
    const D di;
    constexpr bool kLeast = Keys::kOfLeast;
    HWY_ALIGN float best[kMaxColumnBytes / sizeof(T)];
    const size_t n = hn::Lanes(d);
    const size_t whole = width / n * n;
    for (size_t i = 0; i < whole; i += n) {
      hn::Store(hn::BitCast(d, Keys::Bits(di, hn::Load(di, keys + i))), d, best + i);
    }
    size_t r = 0;
    for (; r + 8 <= row_count; r += 8) {
      const float* p[8];
      for (size_t j = 0; j < 8; ++j) p[j] = static_cast<const float*>(rows[r + j]);
      const P first = static_cast<P>(position + r);
      for (size_t i = 0; i < whole; i += n) {
        const auto load = [&](size_t j) HWY_ATTR { return hn::LoadU(d, p[j] + i); };
        const auto sum = hn::Add(hn::Add(hn::Add(load(0), load(1)), hn::Add(load(2), load(3))),
                                 hn::Add(hn::Add(load(4), load(5)), hn::Add(load(6), load(7))));
        auto value = hn::Load(d, best + i);
        auto place = hn::Load(DP(), places + i);
        if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(sum)))) {
          Pair pair = {Keys::Of(di, hn::BitCast(di, value)), place};
          for (size_t j = 0; j < 8; ++j) {
            pair = Step(pair, Keys::Of(di, hn::BitCast(di, load(j))), first + j);
          }
          value = hn::BitCast(d, Keys::Bits(di, pair.key));
          place = pair.place;
        } else {
          HWY_UNROLL(8)
          for (size_t j = 0; j < 8; ++j) {
            const auto x = load(j);
            const auto wins = kLeast ? (kLast ? hn::Le(x, value) : hn::Lt(x, value))
                                     : (kLast ? hn::Ge(x, value) : hn::Gt(x, value));
            value = hn::IfThenElse(wins, x, value);
            place = hn::IfThenElse(hn::RebindMask(DP(), wins),
                                   hn::Set(DP(), static_cast<P>(first + j)), place);
          }
        }
        hn::Store(value, d, best + i);
        hn::Store(place, DP(), places + i);
      }
    }
    for (size_t i = 0; i < whole; i += n) {
      hn::Store(Keys::Of(di, hn::BitCast(di, hn::Load(d, best + i))), di, keys + i);
    }
    // The remaining rows and columns are compared by keys.
    if (whole > 0) FoldRows(rows + r, row_count - r, position + r, keys, places, whole);
    if (whole == width) return;
    const void* rest[kMostRows];
    for (size_t j = 0; j < row_count; ++j) rest[j] = static_cast<const T*>(rows[j]) + whole;
    FoldRows(rest, row_count, position, keys + whole, places + whole, width - whole);
  }

  // Processes whole vectors; states are padded. `place_at` loads the places of the other keys.
  template <class PlaceAt>
  static HWY_INLINE void MergePlanes(T* keys, Place* places, const T* other_keys, PlaceAt place_at,
                                     size_t width) {
    const hn::ScalableTag<Place> d;
    const hn::Rebind<T, decltype(d)> dk;
    const auto widen = [](auto key) HWY_ATTR {
      if constexpr (kLocal) {
        return hn::PromoteTo(hn::RebindToSigned<decltype(d)>(), key);
      } else {
        return key;
      }
    };
    for (size_t i = 0; i < width; i += hn::Lanes(d)) {
      const auto key = hn::Load(dk, keys + i);
      const auto other_key = hn::Load(dk, other_keys + i);
      const auto a = widen(key);
      const auto b = widen(other_key);
      const auto wins = hn::RebindMask(d, kLast ? hn::Not(hn::Gt(a, b)) : hn::Gt(b, a));
      hn::Store(hn::IfThenElse(wins, place_at(d, i), hn::Load(d, places + i)), d, places + i);
      hn::Store(hn::Max(key, other_key), dk, keys + i);
    }
  }

  static void Columns(const void* const* rows, size_t row_count, uint64_t position, void* states,
                      size_t width) {
    T* keys = KeyPlane(states, width);
    Place* places = PlacePlane(states, width);
    if constexpr (kFoldsFloats) {
      FoldFloatRows(rows, row_count, position, keys, places, width);
    } else if constexpr (!kLocal) {
      FoldRows(rows, row_count, position, keys, places, width);
    } else {
      HWY_ALIGN T local_keys[kMaxColumnBytes / sizeof(T)];
      HWY_ALIGN P local_places[kMaxColumnBytes / sizeof(T)];
      std::fill_n(local_keys, PaddedWidth(width), hwy::LimitsMin<T>());
      std::fill_n(local_places, PaddedWidth(width), P{0});
      FoldRows(rows, row_count, 0, local_keys, local_places, width);
      const auto place_at = [&](auto d, size_t i) HWY_ATTR {
        const hn::Rebind<P, decltype(d)> dp;
        const auto place = hn::PromoteTo(d, hn::Load(dp, local_places + i));
        return hn::Add(hn::Set(d, static_cast<Place>(position)), place);
      };
      MergePlanes(keys, places, local_keys, place_at, width);
    }
  }

  static void Merge(void* into, const void* from, size_t width) {
    void* other = const_cast<void*>(from);
    const Place* other_places = PlacePlane(other, width);
    const auto place_at = [&](auto d, size_t i) HWY_ATTR { return hn::Load(d, other_places + i); };
    MergePlanes(KeyPlane(into, width), PlacePlane(into, width), KeyPlane(other, width), place_at,
                width);
  }

  static void Finish(const void* states, size_t width, uint64_t /*count*/, void* results) {
    const Place* places = PlacePlane(const_cast<void*>(states), width);
    std::copy_n(places, width, static_cast<uint32_t*>(results));
  }

  static FoldKernels Kernels() {
    return {kStateBytes, sizeof(T) + sizeof(P), Init, Row, Columns, Merge, Finish};
  }
};

template <bool kLeast, bool kLast, bool kNanLast = false>
FoldKernels Of(DataType type) {
  return WithBitsOf(type, [](auto bits, auto is_float) {
    using T = decltype(bits);
    using Keys = std::conditional_t<decltype(is_float)::value, FloatKeys<T, kLeast, kNanLast>,
                                    IntegerKeys<T, kLeast>>;
    return ArgFold<Keys, kLast>::Kernels();
  });
}

FoldKernels ArgsOf(ReduceFunction function, DataType type, bool last_wins, bool nan_is_last) {
  if (nan_is_last) return Of<true, false, true>(type);
  if (function == ReduceFunction::kArgMin) {
    return last_wins ? Of<true, true>(type) : Of<true, false>(type);
  }
  return last_wins ? Of<false, true>(type) : Of<false, false>(type);
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(ArgsOf);

FoldKernels ArgKernels(ReduceFunction function, DataType type, bool last_wins, bool nan_is_last) {
  return HWY_DYNAMIC_DISPATCH(ArgsOf)(function, type, last_wins, nan_is_last);
}

}  // namespace opmill
#endif  // HWY_ONCE
