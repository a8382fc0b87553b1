// Dimensions that kernels iterate over, with a stride in each of the tensors that they read or
// write. Strides and offsets are in elements.
#ifndef OPMILL_KERNELS_DIMS_DIMS_H_
#define OPMILL_KERNELS_DIMS_DIMS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/descriptor/tensor.h"

namespace opmill {

template <size_t kTensors>
using Offsets = std::array<uint64_t, kTensors>;  // one in each tensor

template <size_t kTensors>
struct StridedDim {
  uint64_t size = 1;
  Offsets<kTensors> strides = {};
  friend bool operator==(const StridedDim&, const StridedDim&) = default;
};

template <size_t kTensors>
using Dims = std::vector<StridedDim<kTensors>>;  // outermost first

// D below is a StridedDim, or a type with more members than `size` and `strides`.

template <typename D>
uint64_t CountOf(const std::vector<D>& dims) {
  uint64_t count = 1;
  for (const auto& dim : dims) count *= dim.size;
  return count;
}

// The offset from the first element to the farthest one.
template <size_t kTensors>
uint64_t SpanOf(const StridedDim<kTensors>& dim, size_t tensor) {
  return (dim.size - 1) * dim.strides[tensor];
}
template <size_t kTensors>
uint64_t SpanOf(const Dims<kTensors>& dims, size_t tensor) {
  uint64_t span = 0;
  for (const auto& dim : dims) span += SpanOf(dim, tensor);
  return span;
}

// The dimension with the largest span; the outermost of equal ones.
template <size_t kTensors>
size_t LongestDim(const Dims<kTensors>& dims, size_t tensor) {
  const auto longest = std::max_element(
      dims.begin(), dims.end(),
      [tensor](const auto& a, const auto& b) { return SpanOf(a, tensor) < SpanOf(b, tensor); });
  return static_cast<size_t>(longest - dims.begin());
}

// Moves `offsets` by so many steps along the dimension.
template <size_t kTensors, typename D>
void Advance(Offsets<kTensors>& offsets, const D& dim, uint64_t steps) {
  for (size_t t = 0; t < kTensors; ++t) offsets[t] += steps * dim.strides[t];
}

// Sets the strides of a tensor, whose dimensions `dims` are.
template <typename D>
void SetStrides(std::vector<D>& dims, size_t tensor, const TensorDesc& desc) {
  const std::vector<uint32_t> strides = EffectiveStrides(desc);
  for (size_t d = 0; d < dims.size(); ++d) dims[d].strides[tensor] = strides[d];
}

// The dimensions of a tensor, with its strides as those of number `tensor`.
template <size_t kTensors>
Dims<kTensors> DimsOf(const TensorDesc& desc, size_t tensor = 0) {
  Dims<kTensors> dims(desc.sizes.size());
  for (size_t d = 0; d < dims.size(); ++d) dims[d].size = desc.sizes[d];
  SetStrides(dims, tensor, desc);
  return dims;
}

// Orders dimensions by their strides in a tensor, largest first.
template <typename D>
void SortByStride(std::vector<D>& dims, size_t tensor) {
  std::stable_sort(dims.begin(), dims.end(), [tensor](const auto& a, const auto& b) {
    return a.strides[tensor] > b.strides[tensor];
  });
}

// Drops dimensions of size 1, and merges neighbors that can be walked as one: in every tensor, one
// step of the outer dimension is equal to one step past the end of the inner one. Those that are
// not `plain` remain as they are.
template <typename D, typename IsPlain>
void MergeDims(std::vector<D>& dims, const IsPlain& plain) {
  std::vector<D> merged;
  for (const D& dim : dims) {
    if (!plain(dim)) {
      merged.push_back(dim);
      continue;
    }
    if (dim.size == 1) continue;
    auto past_end = dim.strides;
    for (uint64_t& offset : past_end) offset *= dim.size;
    if (!merged.empty() && plain(merged.back()) && merged.back().strides == past_end) {
      merged.back().size *= dim.size;
      merged.back().strides = dim.strides;
    } else {
      merged.push_back(dim);
    }
  }
  dims = std::move(merged);
}
template <typename D>
void MergeDims(std::vector<D>& dims) {
  MergeDims(dims, [](const D&) { return true; });
}

// Walks the elements in row-major order, starting at element `position`. `dims` must outlive it.
template <size_t kTensors>
class Walk {
 public:
  Walk(const Dims<kTensors>& dims, uint64_t position) : dims_(dims) {
    for (size_t i = dims.size(); i-- > 0;) {
      at_[i] = position % dims[i].size;
      position /= dims[i].size;
      ForEachTensor([&](size_t t) { offsets_[t] += at_[i] * dims[i].strides[t]; });
    }
  }

  uint64_t offset(size_t tensor) const { return offsets_[tensor]; }
  const Offsets<kTensors>& offsets() const { return offsets_; }

  void Next() {
    for (size_t i = dims_.size(); i-- > 0;) {
      const StridedDim<kTensors>& dim = dims_[i];
      ForEachTensor([&](size_t t) { offsets_[t] += dim.strides[t]; });
      if (++at_[i] < dim.size) return;
      ForEachTensor([&](size_t t) { offsets_[t] -= dim.strides[t] * dim.size; });
      at_[i] = 0;
    }
  }

 private:
  // Unrolled even where compilers optimize for size.
  template <typename Visit>
  static void ForEachTensor(const Visit& visit) {
    [&]<size_t... t>(std::index_sequence<t...>) { (visit(t), ...); }
    (std::make_index_sequence<kTensors>());
  }

  const Dims<kTensors>& dims_;
  uint64_t at_[kMaxRank] = {};
  Offsets<kTensors> offsets_ = {};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_DIMS_DIMS_H_
