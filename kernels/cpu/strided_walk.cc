#include "kernels/cpu/strided_walk.h"

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

void SplitDims(const TensorDesc& input, const TensorDesc& output, const TensorDesc* indices,
               const std::vector<uint32_t>& axes, std::vector<WorkDim>& kept,
               std::vector<WorkDim>& reduced) {
  const std::vector<uint32_t> in = EffectiveStrides(input);
  const std::vector<uint32_t> out = EffectiveStrides(output);
  const std::vector<uint32_t> index = EffectiveStrides(indices != nullptr ? *indices : output);
  for (uint32_t axis = 0; axis < input.sizes.size(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (input.sizes[axis] == 1) continue;
    (is_reduced ? reduced : kept).push_back({input.sizes[axis], in[axis], out[axis], index[axis]});
  }
}

uint64_t CountOf(const std::vector<WorkDim>& dims) {
  uint64_t count = 1;
  for (const WorkDim& dim : dims) count *= dim.size;
  return count;
}

bool IsOuter(const WorkDim& a, const WorkDim& b) { return a.input > b.input; }

void MergeDims(std::vector<WorkDim>& dims) {
  std::vector<WorkDim> merged;
  for (const WorkDim& dim : dims) {
    const auto is_next = [&](uint64_t outer, uint64_t inner) { return outer == inner * dim.size; };
    if (!merged.empty() && is_next(merged.back().input, dim.input) &&
        is_next(merged.back().output, dim.output) && is_next(merged.back().indices, dim.indices)) {
      const uint64_t size = merged.back().size * dim.size;
      merged.back() = dim;
      merged.back().size = size;
    } else {
      merged.push_back(dim);
    }
  }
  dims = std::move(merged);
}

void SortAndMerge(std::vector<WorkDim>& dims) {
  std::stable_sort(dims.begin(), dims.end(), IsOuter);
  MergeDims(dims);
}

Walk::Walk(const std::vector<WorkDim>& dims, uint64_t position) : dims_(dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    at_[i] = position % dims[i].size;
    position /= dims[i].size;
    input_ += at_[i] * dims[i].input;
    output_ += at_[i] * dims[i].output;
    indices_ += at_[i] * dims[i].indices;
  }
}

void InputOffsets(const std::vector<WorkDim>& dims, uint64_t position,
                  absl::Span<uint64_t> offsets) {
  Walk walk(dims, position);
  if (dims.empty() || dims.back().size < kShortLoop) {
    for (uint64_t& offset : offsets) {
      offset = walk.input();
      walk.Next();
    }
    return;
  }
  const WorkDim& last = dims.back();
  for (size_t i = 0; i < offsets.size();) {
    const uint64_t first = Walk(dims, position + i).input();
    const uint64_t run =
        std::min<uint64_t>(last.size - (position + i) % last.size, offsets.size() - i);
    for (uint64_t j = 0; j < run; ++j) offsets[i + j] = first + j * last.input;
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
