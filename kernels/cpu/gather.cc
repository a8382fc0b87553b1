#include "kernels/cpu/gather.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/element_dispatch.h"
#include "kernels/cpu/move_kernels.h"

namespace opmill {
namespace {

constexpr size_t kShortLoop = 16;

template <typename T>
void GatherAs(const std::byte* input, std::byte* packed, absl::Span<const uint64_t> columns,
              absl::Span<const uint64_t> rows, uint64_t pitch) {
  const T* from = reinterpret_cast<const T*>(input);
  T* to = reinterpret_cast<T*>(packed);
  const auto step = [](absl::Span<const uint64_t> offsets) {
    return offsets.size() < 2 ? uint64_t{0} : offsets[1] - offsets[0];
  };
  // The inner loop follows the smaller step in the input, unless that loop would be too short.
  if (step(rows) < step(columns) && rows.size() > kShortLoop) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const T* column = from + columns[i];
      for (size_t r = 0; r < rows.size(); ++r) to[r * pitch + i] = column[rows[r]];
    }
  } else {
    for (size_t r = 0; r < rows.size(); ++r) {
      const T* row = from + rows[r];
      for (size_t i = 0; i < columns.size(); ++i) to[r * pitch + i] = row[columns[i]];
    }
  }
}

bool AreConsecutive(absl::Span<const uint64_t> offsets) {
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

}  // namespace

void InputOffsets(const SpaceDims& dims, uint64_t position, absl::Span<uint64_t> offsets) {
  Walk walk(dims, position);
  if (dims.empty() || dims.back().size < kShortLoop) {
    for (uint64_t& offset : offsets) {
      offset = walk.offset(kInputTensor);
      walk.Next();
    }
    return;
  }
  const SpaceDim& last = dims.back();
  for (size_t i = 0; i < offsets.size();) {
    const uint64_t first = Walk(dims, position + i).offset(kInputTensor);
    const uint64_t run =
        std::min<uint64_t>(last.size - (position + i) % last.size, offsets.size() - i);
    for (uint64_t j = 0; j < run; ++j) offsets[i + j] = first + j * last.strides[kInputTensor];
    i += run;
  }
}

void CopyElement(std::byte* to, const std::byte* from, uint32_t element_bytes) {
  switch (element_bytes) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    default:
      std::memcpy(to, from, 8);
      return;
  }
}

void Gather(const std::byte* input, std::byte* packed, absl::Span<const uint64_t> columns,
            absl::Span<const uint64_t> rows, uint64_t pitch, uint32_t element_bytes) {
  if (rows.size() > 1 && AreConsecutive(rows)) {
    TransposeRows(input + rows[0] * element_bytes, columns, rows.size(), packed, pitch,
                  element_bytes);
    return;
  }
  WithWordOf(element_bytes,
             [&](auto word) { GatherAs<decltype(word)>(input, packed, columns, rows, pitch); });
}

}  // namespace opmill
