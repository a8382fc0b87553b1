#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "hwy/contrib/sort/vqsort.h"
#include "kernels/base/per_thread.h"
#include "kernels/cpu/element_dispatch.h"
#include "kernels/operators/reduction/fold_kernels.h"
#include "kernels/operators/top_k/top_k_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/top_k/top_k_kernels_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {

inline bool Precedes(uint64_t a, uint64_t b) { return a > b; }
inline bool Precedes(const WideCandidate& a, const WideCandidate& b) {
  return a.key != b.key ? a.key > b.key : a.place > b.place;
}
inline uint64_t PlaceOf(uint64_t candidate) { return static_cast<uint32_t>(~candidate); }
inline uint64_t PlaceOf(const WideCandidate& candidate) { return ~candidate.place; }

// Up to this many candidates, std::sort is faster than VQSort.
constexpr size_t kFew = 16;
// From this many candidates on, sorting with VQSort is faster than std::nth_element.
constexpr size_t kMany = 512;
// Short sequences: taking the greatest of n elements k times is faster than sorting them while k *
// n is at most this. VQSort asks the system for random numbers each time (Highway 1.0.3).
constexpr size_t kMostTaken = 2048;
// If k is small, the first threshold is taken from k + kAhead elements.
constexpr size_t kAhead = 16;
// The first threshold of a long sequence: from at most kMostSeen elements, in at most kMostGroups.
constexpr size_t kMostSeen = 16384;
constexpr size_t kMostGroups = 1024;

constexpr size_t Ahead(size_t k, size_t room) {
  return k < kMany / 4 ? std::min(room, k + kAhead) : room;
}

void Sort(uint64_t* candidates, size_t count) {
  if (count <= kFew) {
    std::sort(candidates, candidates + count, [](uint64_t a, uint64_t b) { return a > b; });
    return;
  }
  static PerThread<hwy::Sorter> sorters;
  PerThread<hwy::Sorter>::Use sorter(sorters);
  (*sorter)(candidates, count, hwy::SortDescending());
}
void Sort(WideCandidate* candidates, size_t count) {
  std::sort(candidates, candidates + count,
            [](const WideCandidate& a, const WideCandidate& b) { return Precedes(a, b); });
}

template <class Keys>
struct TopK {
  using T = typename Keys::Key;
  using U = std::make_unsigned_t<T>;
  using D = hn::ScalableTag<T>;
  using Candidate = std::conditional_t<sizeof(T) == 8, WideCandidate, uint64_t>;

  static HWY_INLINE Candidate Make(T key, uint64_t position) {
    // Converts signed keys to unsigned ones of the same order.
    constexpr U kFlip = std::is_signed_v<T> ? static_cast<U>(U{1} << (8 * sizeof(T) - 1)) : U{0};
    const U ordered = static_cast<U>(static_cast<U>(key) ^ kFlip);
    if constexpr (sizeof(T) == 8) {
      return {~position, ordered};
    } else {
      return uint64_t{ordered} << 32 | static_cast<uint32_t>(~position);
    }
  }
  static HWY_INLINE T KeyOf(const Candidate& candidate) {
    constexpr U kFlip = std::is_signed_v<T> ? static_cast<U>(U{1} << (8 * sizeof(T) - 1)) : U{0};
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>(candidate.key ^ kFlip);
    } else {
      return static_cast<T>(static_cast<U>(static_cast<U>(candidate >> 32) ^ kFlip));
    }
  }

  static HWY_INLINE void MakeAll(const T* from, size_t count, uint64_t position,
                                 Candidate* candidates) {
    const D d;
    const size_t n = hn::Lanes(d);
    HWY_ALIGN T keys[kStateStep];
    size_t i = 0;
    for (; i + n <= count; i += n) {
      hn::Store(Keys::Load(d, from + i), d, keys);
      for (size_t j = 0; j < n; ++j) candidates[i + j] = Make(keys[j], position + i + j);
    }
    for (; i < count; ++i) candidates[i] = Make(Keys::Of(from[i]), position + i);
  }

  template <class M>
  static HWY_INLINE uint64_t BitsOf(D d, M mask) {
    uint8_t bytes[kStateStep / 8 + 8] = {};
    hn::StoreMaskBits(d, mask, bytes);
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, sizeof(bits));
    const size_t n = hn::Lanes(d);
    return n < 64 ? bits & ((uint64_t{1} << n) - 1) : bits;
  }

  // Moves the k greatest candidates to the front, in any order, and returns the least of their
  // keys.
  static T Shrink(Candidate* candidates, size_t count, size_t k) {
    if (sizeof(T) < 8 && count >= kMany) {
      Sort(candidates, count);
    } else if (count > k) {
      std::nth_element(candidates, candidates + k - 1, candidates + count,
                       [](const Candidate& a, const Candidate& b) { return Precedes(a, b); });
    }
    return KeyOf(candidates[k - 1]);
  }

  // A threshold that at least k elements reach: the k-th greatest of the maxima of groups of the
  // first elements. The least key if there are too few elements.
  static T Seed(const T* from, size_t count, size_t k) {
    size_t groups = kStateStep;
    while (groups < 4 * k && groups < kMostGroups) groups *= 2;
    const size_t rounds = std::min(count / 4, kMostSeen) / groups;
    if (k > kMostGroups / 4 || rounds < 2) return hwy::LimitsMin<T>();
    const D d;
    HWY_ALIGN T greatest[kMostGroups];
    std::fill_n(greatest, groups, hwy::LimitsMin<T>());
    for (size_t at = 0; at < rounds * groups; at += groups) {
      for (size_t i = 0; i < groups; i += hn::Lanes(d)) {
        const auto keys = Keys::Load(d, from + at + i);
        hn::Store(hn::Max(hn::Load(d, greatest + i), keys), d, greatest + i);
      }
    }
    std::nth_element(greatest, greatest + k - 1, greatest + groups, std::greater<T>());
    return greatest[k - 1];
  }

  // Takes the greatest key k times. Returns false if there are fewer keys above the least.
  static HWY_INLINE bool TakeGreatest(const T* from, size_t count, uint64_t position, size_t k,
                                      Candidate* found) {
    const D d;
    const size_t n = hn::Lanes(d);
    HWY_ALIGN T keys[kTopKSorted + kStateStep];
    size_t i = 0;
    for (; i + n <= count; i += n) hn::Store(Keys::Load(d, from + i), d, keys + i);
    if (i < count) {
      hn::Store(hn::Set(d, hwy::LimitsMin<T>()), d, keys + i);
      for (size_t j = i; j < count; ++j) keys[j] = Keys::Of(from[j]);
    }
    for (size_t taken = 0; taken < k; ++taken) {
      auto greatest = hn::Load(d, keys);
      for (size_t j = n; j < count; j += n) greatest = hn::Max(greatest, hn::Load(d, keys + j));
      greatest = hn::MaxOfLanes(d, greatest);
      const T key = hn::GetLane(greatest);
      if (key == hwy::LimitsMin<T>()) return false;
      size_t at = 0;
      while (hn::AllFalse(d, hn::Eq(hn::Load(d, keys + at), greatest))) at += n;
      at += static_cast<size_t>(hn::FindFirstTrue(d, hn::Eq(hn::Load(d, keys + at), greatest)));
      found[taken] = Make(key, position + at);
      keys[at] = hwy::LimitsMin<T>();
    }
    return true;
  }

  // Skips elements that are not greater than the k-th best so far (equal ones come later in the
  // order). Of random data, about k * log(count / k) elements are not skipped.
  static void Select(const void* elements, size_t count, uint64_t position, size_t k,
                     void* candidates, size_t room) {
    const T* from = static_cast<const T*>(elements);
    Candidate* const found = static_cast<Candidate*>(candidates);
    if constexpr (sizeof(T) > 1) {
      if (count <= kTopKSorted && k <= count && k * count <= kMostTaken &&
          TakeGreatest(from, count, position, k, found)) {
        return;
      }
    }
    size_t filled = 0;
    T threshold = hwy::LimitsMin<T>();  // candidates are greater
    if (const T seed = Seed(from, count, k); seed > threshold) {
      threshold = static_cast<T>(seed - 1);
    } else {
      filled = room == count ? count : std::min(Ahead(k, room), count);
      MakeAll(from, filled, position, found);
    }
    size_t i = filled;
    if (i < count) {
      const D d;
      const size_t n = hn::Lanes(d);
      if (filled > 0) {
        threshold = Shrink(found, filled, k);
        filled = k;
      }
      const auto push = [&](size_t at) HWY_ATTR {
        const T key = Keys::Of(from[at]);
        if (key <= threshold) return;
        found[filled++] = Make(key, position + at);
        if (filled < room) return;
        threshold = Shrink(found, filled, k);
        filled = k;
      };
      for (; i + 8 * n <= count; i += 8 * n) {
        if (HWY_LIKELY(!Keys::MayExceed(d, from + i, threshold))) continue;
        const auto least = hn::Set(d, threshold);
        for (size_t j = i; j < i + 8 * n; j += n) {
          for (uint64_t set = BitsOf(d, hn::Gt(Keys::Load(d, from + j), least)); set != 0;
               set &= set - 1) {
            push(j + hwy::Num0BitsBelowLS1Bit_Nonzero64(set));
          }
        }
      }
      for (; i < count; ++i) push(i);
    }
    SortFirst(found, filled, std::min(k, count));
  }

  static void SortFirst(Candidate* found, size_t filled, size_t kept) {
    if (kept < filled / 4 && filled > kTopKSorted) {
      Shrink(found, filled, kept);
      filled = kept;
    }
    Sort(found, filled);
  }

  // Like Select, for adjacent sequences. Proceeds position by position over all sequences.
  static void SelectColumns(const void* elements, size_t width, size_t count, size_t stride,
                            size_t k, void* candidates, size_t room) {
    const T* from = static_cast<const T*>(elements);
    Candidate* const found = static_cast<Candidate*>(candidates);
    const D d;
    const size_t n = hn::Lanes(d);
    HWY_ALIGN T thresholds[kMostTopKColumns + kStateStep];
    size_t filled[kMostTopKColumns];
    const size_t ahead = std::min(Ahead(k, room), count);
    for (size_t i = 0; i < width; ++i) {
      Candidate* own = found + i * room;
      for (size_t r = 0; r < ahead; ++r) own[r] = Make(Keys::Of(from[r * stride + i]), r);
      filled[i] = ahead;
      if (ahead == count) continue;
      thresholds[i] = Shrink(own, ahead, k);
      filled[i] = k;
    }
    const auto push = [&](size_t r, size_t i) HWY_ATTR {
      const T key = Keys::Of(from[r * stride + i]);
      if (key <= thresholds[i]) return;
      Candidate* own = found + i * room;
      own[filled[i]++] = Make(key, r);
      if (filled[i] < room) return;
      thresholds[i] = Shrink(own, room, k);
      filled[i] = k;
    };
    const size_t whole = width / n * n;
    constexpr size_t kRows = 8;
    for (size_t r = ahead; r < count; r += kRows) {
      const size_t rows = std::min(kRows, count - r);
      const T* first = from + r * stride;
      for (size_t i = 0; i < whole; i += n) {
        const auto least = hn::Load(d, thresholds + i);
        auto greatest = Keys::Load(d, first + i);
        for (size_t j = 1; j < rows; ++j) {
          greatest = hn::Max(greatest, Keys::Load(d, first + j * stride + i));
        }
        const auto passed = hn::Gt(greatest, least);
        if (HWY_LIKELY(hn::AllFalse(d, passed))) continue;
        for (uint64_t set = BitsOf(d, passed); set != 0; set &= set - 1) {
          const size_t column = i + hwy::Num0BitsBelowLS1Bit_Nonzero64(set);
          for (size_t j = 0; j < rows; ++j) push(r + j, column);
        }
      }
      for (size_t i = whole; i < width; ++i) {
        for (size_t j = 0; j < rows; ++j) push(r + j, i);
      }
    }
    for (size_t i = 0; i < width; ++i) SortFirst(found + i * room, filled[i], std::min(k, count));
  }

  static void Merge(const void* a, size_t a_count, const void* b, size_t b_count, size_t k,
                    void* merged) {
    const auto* left = static_cast<const Candidate*>(a);
    const auto* right = static_cast<const Candidate*>(b);
    const Candidate* left_end = left + a_count;
    const Candidate* right_end = right + b_count;
    auto* to = static_cast<Candidate*>(merged);
    for (size_t i = 0; i < std::min(k, a_count + b_count); ++i) {
      const bool takes_left = right == right_end || (left != left_end && Precedes(*left, *right));
      to[i] = takes_left ? *left++ : *right++;
    }
  }

  static void Places(const void* candidates, size_t count, uint64_t* places) {
    const auto* from = static_cast<const Candidate*>(candidates);
    for (size_t i = 0; i < count; ++i) places[i] = PlaceOf(from[i]);
  }

  static TopKKernels Kernels() { return {Select, SelectColumns, Merge, Places}; }
};

template <bool kLeast>
TopKKernels Of(DataType type) {
  return WithBitsOf(type, [](auto bits, auto is_float) {
    using T = decltype(bits);
    using Keys = std::conditional_t<decltype(is_float)::value, FloatKeys<T, kLeast, kLeast>,
                                    IntegerKeys<T, kLeast>>;
    return TopK<Keys>::Kernels();
  });
}

TopKKernels TopKsOf(DataType type, bool largest) {
  return largest ? Of<false>(type) : Of<true>(type);
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(TopKsOf);

TopKKernels TopKKernelsOf(DataType type, bool largest) {
  return HWY_DYNAMIC_DISPATCH(TopKsOf)(type, largest);
}

}  // namespace opmill
#endif  // HWY_ONCE
