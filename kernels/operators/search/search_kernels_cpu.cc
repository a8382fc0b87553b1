#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "hwy/cache_control.h"
#include "kernels/base/half.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/task_memory.h"
#include "kernels/operators/search/search_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/operators/search/search_kernels_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/vectors-inl.h"

// Whether ReorderWidenMulAccumulate adds the products of adjacent pairs.
#undef OPMILL_SEARCH_HAS_PAIRS
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define OPMILL_SEARCH_HAS_PAIRS 1
#else
#define OPMILL_SEARCH_HAS_PAIRS 0
#endif
// Whether processors of this instruction set may also have VNNI.
#undef OPMILL_SEARCH_HAS_QUADS
#if HWY_TARGET == HWY_AVX3 && defined(__GNUC__)
#define OPMILL_SEARCH_HAS_QUADS 1
#else
#define OPMILL_SEARCH_HAS_QUADS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> kFloats;
constexpr size_t kLanes = hn::MaxLanes(kFloats);
constexpr size_t kMostWidth = 2 * kLanes;
// Sums of a tile stay in registers: 24 of the 32 of AVX-512, 12 of the 16 of others.
constexpr size_t kRowsOfTwo = kLanes == 16 ? 12 : 6;
constexpr uint64_t kTilesAhead = 2;

HWY_INLINE void PrefetchAhead(const std::byte* from) {
#if defined(__GNUC__)
  __builtin_prefetch(from, 0, 2);
#else
  hwy::Prefetch(from);
#endif
}

// Numbers of 4 bytes, which need not be aligned.
template <class T>
HWY_INLINE T WordAt(const std::byte* from) {
  T word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// How rows are multiplied: what a word of a row and of the queries has, and the sum of their
// products.
struct Floats {
  using Number = float;
  static constexpr uint32_t kPerWord = 1;
  template <class D, class V>
  static HWY_INLINE V Add(D /*d*/, V row, V column, V sum) {
    return hn::MulAdd(row, column, sum);
  }
};
struct Pairs {
  using Number = int32_t;
  static constexpr uint32_t kPerWord = kSearchPair;
  template <class D, class V>
  static HWY_INLINE V Add([[maybe_unused]] D d, V row, V column, V sum) {
#if OPMILL_SEARCH_HAS_PAIRS
    const hn::RepartitionToNarrow<D> dn;
    V other = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(dn, row), hn::BitCast(dn, column), sum,
                                         other);
#else
    const auto low = [&](V x) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(x)); };
    sum = hn::Add(sum, hn::Mul(low(row), low(column)));
    return hn::Add(sum, hn::Mul(hn::ShiftRight<16>(row), hn::ShiftRight<16>(column)));
#endif
  }
};

// A tile of rows, and a panel of queries.
template <class T>
struct TilePlace {
  const std::byte* rows = nullptr;
  size_t stride = 0;  // bytes
  size_t words = 0;
  const T* panel = nullptr;
  const T* start = nullptr;  // of the sums of each row
  T* products = nullptr;
  // What is read later: `step` bytes are prefetched for each word.
  const std::byte* ahead = nullptr;
  size_t step = 0;
};

// The products of kRows rows with a panel of kVectors vectors. Each is a sum in the order of the
// words, whatever the width.
#define OPMILL_SEARCH_TILE MultiplyTile
#define OPMILL_SEARCH_ATTRIBUTES
#include "kernels/operators/search/search_tile.inc"

#if OPMILL_SEARCH_HAS_QUADS

#define OPMILL_SEARCH_QUADS __attribute__((target("avx512vnni,avx512vl")))

// INT8 of rows, in place, and UINT8 of queries.
struct Quads {
  using Number = int32_t;
  static constexpr uint32_t kPerWord = kSearchQuad;
  using Sum1 = hn::Vec128<int32_t>;
  using Sum2 = hn::Vec256<int32_t>;
  using Sum4 = hn::Vec512<int32_t>;
  template <class D>
  OPMILL_SEARCH_QUADS static HWY_INLINE Sum1 Add(D /*d*/, Sum1 row, Sum1 column, Sum1 sum) {
    return Sum1{_mm_dpbusd_epi32(sum.raw, column.raw, row.raw)};
  }
  template <class D>
  OPMILL_SEARCH_QUADS static HWY_INLINE Sum2 Add(D /*d*/, Sum2 row, Sum2 column, Sum2 sum) {
    return Sum2{_mm256_dpbusd_epi32(sum.raw, column.raw, row.raw)};
  }
  template <class D>
  OPMILL_SEARCH_QUADS static HWY_INLINE Sum4 Add(D /*d*/, Sum4 row, Sum4 column, Sum4 sum) {
    return Sum4{_mm512_dpbusd_epi32(sum.raw, column.raw, row.raw)};
  }
};

#define OPMILL_SEARCH_TILE MultiplyQuads
#define OPMILL_SEARCH_ATTRIBUTES OPMILL_SEARCH_QUADS
#include "kernels/operators/search/search_tile.inc"

// The sum of all elements.
OPMILL_SEARCH_QUADS HWY_NOINLINE int32_t SumOfBytes(const std::byte* row, size_t words) {
  const hn::ScalableTag<int32_t> d;
  const size_t n = hn::Lanes(d);
  const auto ones = hn::Set(d, 0x01010101);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + n <= words; i += n) {
    sum = Quads::Add(d, hn::LoadU(d, reinterpret_cast<const int32_t*>(row) + i), ones, sum);
  }
  int32_t total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (i *= 4; i < words * 4; ++i) total += static_cast<int8_t>(row[i]);
  return total;
}

#endif  // OPMILL_SEARCH_HAS_QUADS

// A sum over pairs of elements, of term(x, y), in an order that depends only on their number.
template <class Term>
HWY_INLINE float SumOf(const float* a, const float* b, size_t count, const Term& term) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t n = hn::Lanes(d);
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t i = 0;
  for (; i + 4 * n <= count; i += 4 * n) {
    for (size_t j = 0; j < 4; ++j) {
      sums[j] = term(hn::LoadU(d, a + i + j * n), hn::LoadU(d, b + i + j * n), sums[j]);
    }
  }
  for (; i + n <= count; i += n) {
    sums[0] = term(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums[0]);
  }
  const hn::CappedTag<float, 1> one;
  auto last = hn::Zero(one);
  for (; i < count; ++i) last = term(hn::LoadU(one, a + i), hn::LoadU(one, b + i), last);
  const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, sum)) + hn::GetLane(last);
}
float SquaresOf(const float* row, size_t count) {
  return SumOf(row, row, count,
               [](auto x, auto y, auto sum) HWY_ATTR { return hn::MulAdd(x, y, sum); });
}
float DistanceOf(const float* a, const float* b, size_t count) {
  return SumOf(a, b, count, [](auto x, auto y, auto sum) HWY_ATTR {
    const auto difference = hn::Sub(x, y);
    return hn::MulAdd(difference, difference, sum);
  });
}
template <class D>
HWY_INLINE hn::Vec<D> LoadInt16(D d, const int16_t* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadInt16(D d, const int8_t* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<int8_t, D>(), from));
}
template <class Element>  // int8_t or int16_t
int32_t SquaresOf(const Element* row, size_t count) {
  const hn::ScalableTag<int16_t> d;
  const hn::RepartitionToWide<decltype(d)> dw;
  const size_t n = hn::Lanes(d);
  auto sum = hn::Zero(dw);
  auto other = hn::Zero(dw);
  size_t i = 0;
  for (; i + n <= count; i += n) {
    const auto x = LoadInt16(d, row + i);
    sum = hn::ReorderWidenMulAccumulate(dw, x, x, sum, other);
  }
  int32_t total = hn::GetLane(hn::SumOfLanes(dw, hn::Add(sum, other)));
  for (; i < count; ++i) total += int32_t{row[i]} * row[i];
  return total;
}

// Up to kSearchRows rows that are multiplied together.
template <class T>
struct Tile {
  const std::byte* rows = nullptr;
  size_t stride = 0;  // bytes
  size_t count = 0;
  uint64_t indices[kSearchRows] = {};
  T start[kSearchRows] = {};        // of sums
  float factors[kSearchRows] = {};  // COSINE: inverse roots of the sums of squares
  int32_t squares[kSearchRows] = {};
};

template <class Kind>
class Scanner {
 public:
  using T = typename Kind::Number;
  static constexpr bool kIsFloat = Kind::kPerWord == 1;
  static constexpr bool kIsQuads = Kind::kPerWord == kSearchQuad;

  explicit Scanner(const SearchScan& scan)
      : scan_(scan), work_(*scan.work), element_bytes_(ElementBytes(work_.type)) {
    buffer_stride_ = work_.words() * sizeof(T);
    buffer_ = memory_.Take(kSearchRows * buffer_stride_);
  }

  void Run() {
    const uint64_t end = scan_.first_row + scan_.rows;
    const bool is_shared_mask = scan_.mask != nullptr && work_.mask_query_stride == 0;
    for (uint64_t row = scan_.first_row; row < end;) {
      Tile<T> tile;
      while (tile.count < kSearchRows && row < end) {
        if (!is_shared_mask || scan_.mask[row * work_.mask_row_stride] != 0) {
          tile.indices[tile.count++] = row;
        }
        ++row;
      }
      if (tile.count == 0) return;
      Fill(tile);
      // The first panel fetches a tile that comes later.
      TilePlace<T> place = {.rows = tile.rows, .stride = tile.stride, .words = work_.words()};
      FetchAhead(tile, end, place);
      for (const SearchPanel& panel : *scan_.panels) {
        ScanPanel(panel, tile, place);
        place.ahead = tile.rows;
        place.step = 0;
      }
    }
  }

 private:
  void Fill(Tile<T>& tile) {
    const bool is_adjacent = tile.count == kSearchRows &&
                             tile.indices[kSearchRows - 1] - tile.indices[0] == kSearchRows - 1;
    const bool has_words = work_.type == DataType::kFloat32 || (kIsQuads && work_.dims % 4 == 0);
    if (has_words && work_.element_stride == 1 && is_adjacent) {
      tile.stride = work_.row_stride * element_bytes_;
      tile.rows = scan_.vectors + tile.indices[0] * tile.stride;
    } else {
      for (size_t r = 0; r < tile.count; ++r) {
        Copy(scan_.vectors + tile.indices[r] * work_.row_stride * element_bytes_,
             buffer_ + r * buffer_stride_);
      }
      std::fill(buffer_ + tile.count * buffer_stride_, buffer_ + kSearchRows * buffer_stride_,
                std::byte{0});
      tile.rows = buffer_;
      tile.stride = buffer_stride_;
    }
    for (size_t r = 0; r < tile.count; ++r) FindNorms(tile, r);
  }

  // The rows of a tile that comes later, and how much of them each word of this tile's first panel
  // fetches. Short rows of a tile are too many streams for the processor to fetch them by itself.
  void FetchAhead(const Tile<T>& tile, uint64_t end, TilePlace<T>& place) const {
    place.ahead = tile.rows;
    const uint64_t first = tile.indices[0] + kTilesAhead * kSearchRows;
    if (first + kSearchRows > end) return;
    const uint64_t row_bytes = work_.row_stride * element_bytes_;
    place.ahead = scan_.vectors + first * row_bytes;
    place.step = CeilDiv(row_bytes * kSearchRows, work_.words());
  }

  // What scores of the row need beside its products.
  void FindNorms(Tile<T>& tile, size_t r) {
    const std::byte* const row = tile.rows + r * tile.stride;
#if OPMILL_SEARCH_HAS_QUADS
    // Elements of queries are 128 too large. Sums wrap.
    if constexpr (kIsQuads) {
      tile.start[r] = static_cast<int32_t>(static_cast<uint32_t>(SumOfBytes(row, work_.words())) *
                                           static_cast<uint32_t>(-128));
    }
#endif
    if (work_.metric == SearchMetric::kInnerProduct) return;
    float squares = 0;
    if constexpr (kIsFloat) {
      squares = SquaresOf(reinterpret_cast<const float*>(row), work_.dims);
    } else {
      tile.squares[r] = kIsQuads ? SquaresOf(reinterpret_cast<const int8_t*>(row), work_.dims)
                                 : SquaresOf(reinterpret_cast<const int16_t*>(row), work_.dims);
      squares = static_cast<float>(tile.squares[r]);
    }
    if (work_.metric == SearchMetric::kCosine) {
      tile.factors[r] = squares == 0 ? 0.0f : 1 / std::sqrt(squares);
    } else if constexpr (kIsFloat) {
      // Half of what is certainly not more than the sum of squares. Distances to rows whose sum
      // overflows may be anything.
      tile.start[r] = std::isfinite(squares) ? -0.5f * squares * (1 - SearchMargin(work_.dims))
                                             : std::numeric_limits<float>::quiet_NaN();
    }
  }

  // A row as words.
  void Copy(const std::byte* from, std::byte* to) {
    if (work_.type == DataType::kFloat32) {
      CopyElements(reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to));
    } else if (kIsFloat) {
      CopyHalves(reinterpret_cast<const Half*>(from), reinterpret_cast<float*>(to));
    } else if (kIsQuads) {
      CopyElements(reinterpret_cast<const int8_t*>(from), reinterpret_cast<int8_t*>(to));
    } else {
      CopyInt8(reinterpret_cast<const int8_t*>(from), reinterpret_cast<int16_t*>(to));
    }
  }
  template <class E>
  void CopyElements(const E* from, E* to) {
    if (work_.element_stride == 1) {
      std::copy_n(from, work_.dims, to);
    } else {
      for (size_t i = 0; i < work_.dims; ++i) to[i] = from[i * work_.element_stride];
    }
    std::fill(to + work_.dims, to + work_.words() * Kind::kPerWord, E{0});
  }
  void CopyHalves(const Half* from, float* to) {
    size_t i = 0;
    if (work_.element_stride == 1) {
      const size_t n = hn::Lanes(kFloats);
      for (; i + n <= work_.dims; i += n) {
        hn::StoreU(LoadFloats(kFloats, from + i), kFloats, to + i);
      }
    }
    for (; i < work_.dims; ++i) to[i] = HalfToFloat(from[i * work_.element_stride].bits);
  }
  void CopyInt8(const int8_t* from, int16_t* to) {
    size_t i = 0;
    if (work_.element_stride == 1) {
      const hn::ScalableTag<int16_t> d;
      const size_t n = hn::Lanes(d);
      for (; i + n <= work_.dims; i += n) {
        hn::StoreU(LoadInt16(d, from + i), d, to + i);
      }
    }
    for (; i < work_.dims; ++i) to[i] = from[i * work_.element_stride];
    if (work_.dims % 2 != 0) to[work_.dims] = 0;
  }

  void ScanPanel(const SearchPanel& panel, const Tile<T>& tile, const TilePlace<T>& place) {
    if (panel.width == 2 * kLanes) {
      ScanPanel<kLanes, 2>(panel, tile, place);
    } else if (panel.width == kLanes) {
      ScanPanel<kLanes, 1>(panel, tile, place);
    } else if (panel.width * 2 == kLanes) {
      ScanPanel<(kLanes > 1 ? kLanes / 2 : 1), 1>(panel, tile, place);
    } else {
      ScanPanel<(kLanes > 3 ? kLanes / 4 : 1), 1>(panel, tile, place);
    }
  }

  template <size_t kWidth, size_t kVectors>
  HWY_NOINLINE void ScanPanel(const SearchPanel& panel, const Tile<T>& tile, TilePlace<T> place) {
    const hn::CappedTag<T, kWidth> d;
    constexpr size_t kRows = kVectors == 1 ? kSearchRows : kRowsOfTwo;
    HWY_ALIGN T products[kSearchRows * kMostWidth];
    place.panel = static_cast<const T*>(scan_.packed) + panel.offset;
    place.step = CeilDiv(place.step * kRows, kSearchRows);
    for (size_t r = 0; r < kSearchRows; r += kRows) {
      place.rows = tile.rows + r * tile.stride;
      place.start = tile.start + r;
      place.products = products + r * panel.width;
#if OPMILL_SEARCH_HAS_QUADS
      if constexpr (kIsQuads) MultiplyQuads<Kind, decltype(d), kVectors, kRows>(d, place);
#endif
      if constexpr (!kIsQuads) MultiplyTile<Kind, decltype(d), kVectors, kRows>(d, place);
      place.ahead += place.step * place.words;
    }
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t lane = v * hn::Lanes(d);
      if (work_.metric == SearchMetric::kCosine) {
        const hn::RebindToFloat<decltype(d)> df;
        const auto factor =
            hn::LoadU(df, static_cast<const float*>(scan_.norms) + panel.first + lane);
        Filter(df, panel, tile, lane, [&](size_t r) HWY_ATTR {
          const auto product = AsFloats(df, hn::Load(d, products + r * panel.width + lane));
          return hn::Mul(hn::Mul(product, hn::Set(df, tile.factors[r])), factor);
        });
      } else if (!kIsFloat && work_.metric == SearchMetric::kL2) {
        Filter(d, panel, tile, lane, [&](size_t r) HWY_ATTR {
          const auto product = hn::Load(d, products + r * panel.width + lane);
          const auto squares = hn::Set(d, static_cast<T>(tile.squares[r]));
          return hn::Sub(hn::Add(product, product), squares);
        });
      } else {
        Filter(d, panel, tile, lane,
               [&](size_t r) HWY_ATTR { return hn::Load(d, products + r * panel.width + lane); });
      }
    }
  }

  template <class DF, class V>
  static HWY_INLINE hn::Vec<DF> AsFloats(DF df, V products) {
    if constexpr (kIsFloat) {
      return products;
    } else {
      return hn::ConvertTo(df, products);
    }
  }

  // NaN passes, and everything passes a limit of NaN.
  template <class V>
  static HWY_INLINE auto Passes(V numbers, V limit) {
    if constexpr (std::is_same_v<hn::TFromV<V>, float>) {
      return hn::Not(hn::Le(numbers, limit));
    } else {
      return hn::Gt(numbers, limit);
    }
  }

  // Takes from a vector of queries the rows whose number is not below the limit. `at` returns the
  // numbers for a row.
  template <class D, class Numbers>
  HWY_INLINE void Filter(D d, const SearchPanel& panel, const Tile<T>& tile, size_t lane,
                         const Numbers& at) {
    using Number = hn::TFromD<D>;
    const auto limit =
        hn::LoadU(d, static_cast<const Number*>(scan_.lists.limits) + panel.first + lane);
    auto passed = Passes(at(0), limit);
    for (size_t r = 1; r < kSearchRows; ++r) {
      passed = hn::Or(passed, Passes(at(r), limit));
    }
    if (HWY_LIKELY(hn::AllFalse(d, passed))) return;
    const uint32_t first = panel.first + static_cast<uint32_t>(lane);
    const uint32_t lanes = first >= scan_.queries ? 0
                                                  : std::min(static_cast<uint32_t>(hn::Lanes(d)),
                                                             scan_.queries - first);
    HWY_ALIGN Number numbers[kMostWidth];
    for (size_t r = 0; r < tile.count; ++r) {
      const auto row = at(r);
      const auto bits_of_row = Passes(row, limit);
      if (hn::AllFalse(d, bits_of_row)) continue;
      uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, bits_of_row, bytes);
      uint64_t set = 0;
      std::memcpy(&set, bytes, sizeof(set));
      set &= (uint64_t{1} << lanes) - 1;
      hn::Store(row, d, numbers);
      for (; set != 0; set &= set - 1) {
        const auto i = static_cast<uint32_t>(hwy::Num0BitsBelowLS1Bit_Nonzero64(set));
        Take(first + i, tile, r, numbers[i]);
      }
    }
  }

  void Take(uint32_t query, const Tile<T>& tile, size_t r, float number) {
    float score = number;
    if (work_.rescores()) {
      if constexpr (kIsFloat) {
        score =
            -DistanceOf(scan_.query_rows + uint64_t{query} * work_.dims,
                        reinterpret_cast<const float*>(tile.rows + r * tile.stride), work_.dims);
      }
    }
    if (std::isnan(score)) return;
    Append<float>(query, tile.indices[r], SearchKey(score + 0.0f));  // no -0
  }
  void Take(uint32_t query, const Tile<T>& tile, size_t r, int32_t number) {
    if (work_.metric == SearchMetric::kL2)
      number -= static_cast<const int32_t*>(scan_.norms)[query];
    Append<int32_t>(query, tile.indices[r], SearchKey(number));
  }

  template <class Number>
  void Append(uint32_t query, uint64_t row, uint32_t key) {
    const SearchLists& lists = scan_.lists;
    if (key <= lists.least[query]) return;
    if (scan_.mask != nullptr &&
        scan_.mask[query * work_.mask_query_stride + row * work_.mask_row_stride] == 0) {
      return;
    }
    uint64_t* const list = lists.candidates + query * work_.room;
    uint32_t& count = lists.counts[query];
    list[count++] = uint64_t{key} << 32 | static_cast<uint32_t>(~row);
    if (count < work_.room) return;
    std::nth_element(list, list + work_.k - 1, list + count, std::greater<uint64_t>());
    count = work_.k;
    lists.least[query] =
        std::max(lists.least[query], static_cast<uint32_t>(list[work_.k - 1] >> 32));
    static_cast<Number*>(lists.limits)[query] =
        SearchLimit(work_, lists.least[query], static_cast<const Number*>(scan_.norms)[query]);
  }

  const SearchScan& scan_;
  const SearchWork& work_;
  const uint32_t element_bytes_;
  TaskMemory::Scope memory_;
  size_t buffer_stride_ = 0;     // bytes
  std::byte* buffer_ = nullptr;  // for a tile that is not read in place
};

template <class Kind>
void Scan(const SearchScan& scan) {
  Scanner<Kind>(scan).Run();
}
template <class Kind>
SearchKernels KernelsOfKind() {
  return {.lanes = static_cast<uint32_t>(kLanes), .per_word = Kind::kPerWord, .scan = &Scan<Kind>};
}

SearchKernels KernelsOf(DataType type) {
  if (type != DataType::kInt8) return KernelsOfKind<Floats>();
#if OPMILL_SEARCH_HAS_QUADS
  if (__builtin_cpu_supports("avx512vnni")) return KernelsOfKind<Quads>();
#endif
  return KernelsOfKind<Pairs>();
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(KernelsOf);

SearchKernels SearchKernelsOf(DataType type) { return HWY_DYNAMIC_DISPATCH(KernelsOf)(type); }

}  // namespace opmill
#endif  // HWY_ONCE
