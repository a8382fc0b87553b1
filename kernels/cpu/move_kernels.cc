#include "kernels/cpu/move_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/move_kernels.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace opmill {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes squares in registers, of as many rows as 16 bytes have elements. Each step interleaves
// the rows of the upper half with those of the lower half, which moves one bit of the row's number
// to the column's.
template <class T>
void TransposeAs(const T* input, const uint64_t* rows, size_t row_count, size_t count, T* columns,
                 size_t pitch) {
  size_t r = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr size_t kSide = 16 / sizeof(T);
  const hn::Full128<T> d;
  // Loads may exceed the end of a row, but not the end of the last row.
  uint64_t end = 0;
  for (size_t i = 0; i < row_count; ++i) end = std::max(end, rows[i] + count);
  for (; r + kSide <= row_count; r += kSide) {
    uint64_t last = 0;
    for (size_t i = 0; i < kSide; ++i) last = std::max(last, rows[r + i]);
    if (last + std::max(count, kSide) > end) break;
    for (size_t at = 0; at < count; at += kSide) {
      const size_t c = count < kSide ? 0 : std::min(at, count - kSide);
      hn::Vec<decltype(d)> square[kSide];
      HWY_UNROLL(16)
      for (size_t i = 0; i < kSide; ++i) square[i] = hn::LoadU(d, input + rows[r + i] + c);
      for (size_t step = 1; step < kSide; step *= 2) {
        hn::Vec<decltype(d)> next[kSide];
        HWY_UNROLL(8)
        for (size_t i = 0; i < kSide / 2; ++i) {
          next[2 * i] = hn::InterleaveLower(d, square[i], square[i + kSide / 2]);
          next[2 * i + 1] = hn::InterleaveUpper(d, square[i], square[i + kSide / 2]);
        }
        HWY_UNROLL(16)
        for (size_t i = 0; i < kSide; ++i) square[i] = next[i];
      }
      T* to = columns + c * pitch + r;
      if (HWY_LIKELY(count >= kSide)) {
        HWY_UNROLL(16)
        for (size_t i = 0; i < kSide; ++i) hn::StoreU(square[i], d, to + i * pitch);
      } else {
        for (size_t i = 0; i < count; ++i) hn::StoreU(square[i], d, to + i * pitch);
      }
    }
  }
#endif
  for (; r < row_count; ++r) {
    for (size_t c = 0; c < count; ++c) columns[c * pitch + r] = input[rows[r] + c];
  }
}

template <class T>
void TransposeBytes(const std::byte* input, const uint64_t* rows, size_t row_count, size_t count,
                    std::byte* columns, size_t pitch) {
  TransposeAs(reinterpret_cast<const T*>(input), rows, row_count, count,
              reinterpret_cast<T*>(columns), pitch);
}

void Transpose(const std::byte* input, const uint64_t* rows, size_t row_count, size_t count,
               std::byte* columns, size_t pitch, uint32_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return TransposeBytes<uint8_t>(input, rows, row_count, count, columns, pitch);
    case 2:
      return TransposeBytes<uint16_t>(input, rows, row_count, count, columns, pitch);
    case 4:
      return TransposeBytes<uint32_t>(input, rows, row_count, count, columns, pitch);
    default:
      return TransposeBytes<uint64_t>(input, rows, row_count, count, columns, pitch);
  }
}

void Zeros(uint8_t* to, size_t size) {
  const hn::ScalableTag<uint8_t> d;
  const size_t n = hn::Lanes(d);
  const size_t before = std::min(size, (n - reinterpret_cast<uintptr_t>(to) % n) % n);
  std::memset(to, 0, before);
  size_t i = before;
  for (; i + n <= size; i += n) hn::Stream(hn::Zero(d), d, to + i);
  std::memset(to + i, 0, size - i);
}

template <class T>
void OnesAs(const uint32_t* positions, size_t count, uint32_t position, uint32_t one, T* to) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<T, decltype(d)> dt;
  const size_t n = hn::Lanes(d);
  const auto element = [&](size_t i) { return static_cast<T>(positions[i] == position ? one : 0); };
  size_t i = 0;
  for (; i < count && reinterpret_cast<uintptr_t>(to + i) % (n * sizeof(T)) != 0; ++i) {
    to[i] = element(i);
  }
  const auto wanted = hn::Set(d, static_cast<int32_t>(position));
  const auto ones = hn::Set(d, static_cast<int32_t>(one));
  for (; i + n <= count; i += n) {
    const auto places = hn::LoadU(d, reinterpret_cast<const int32_t*>(positions) + i);
    const auto row = hn::IfThenElseZero(hn::Eq(places, wanted), ones);
    if constexpr (sizeof(T) == 4) {
      hn::Stream(row, dt, to + i);
    } else {
      hn::Stream(hn::DemoteTo(dt, row), dt, to + i);
    }
  }
  for (; i < count; ++i) to[i] = element(i);
}

void Ones(const uint32_t* positions, size_t count, uint32_t position, uint32_t one, std::byte* to,
          uint32_t element_bytes) {
  if (element_bytes == 4) {
    OnesAs(positions, count, position, one, reinterpret_cast<int32_t*>(to));
  } else {
    OnesAs(positions, count, position, one, reinterpret_cast<int16_t*>(to));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace opmill
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace opmill {

HWY_EXPORT(Transpose);
HWY_EXPORT(Zeros);
HWY_EXPORT(Ones);

void TransposeRows(const std::byte* input, absl::Span<const uint64_t> rows, uint64_t count,
                   std::byte* columns, uint64_t pitch, uint32_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(Transpose)
  (input, rows.data(), rows.size(), static_cast<size_t>(count), columns, static_cast<size_t>(pitch),
   element_bytes);
}

void WriteZeros(std::byte* to, uint64_t size_bytes, bool past_caches) {
  const auto size = static_cast<size_t>(size_bytes);
  if (past_caches) {
    HWY_DYNAMIC_DISPATCH(Zeros)(reinterpret_cast<uint8_t*>(to), size);
  } else {
    std::memset(to, 0, size);
  }
}

void StreamOnes(absl::Span<const uint32_t> positions, uint32_t position, uint32_t one,
                std::byte* to, uint32_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(Ones)
  (positions.data(), positions.size(), position, one, to, element_bytes);
}

void FinishStreams() { hwy::FlushStream(); }

}  // namespace opmill
#endif  // HWY_ONCE
