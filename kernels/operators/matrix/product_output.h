// The output of a product, as its tasks write it.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_OUTPUT_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_OUTPUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

// Walks the columns of the output, starting at one of them.
class ColumnWalk {
 public:
  ColumnWalk(const Dims<1>& dims, uint64_t column) : dims_(dims) {
    for (size_t i = dims.size(); i-- > 0; column /= dims[i].size) {
      at_[i] = column % dims[i].size;
      offset_ += at_[i] * dims[i].strides[0];
    }
  }
  uint64_t offset() const { return offset_; }
  // The columns that follow with the stride of the last dimension.
  uint64_t left() const { return dims_.back().size - at_[dims_.size() - 1]; }
  void Skip(uint64_t count) {  // at most left()
    size_t i = dims_.size() - 1;
    at_[i] += count;
    offset_ += count * dims_[i].strides[0];
    while (i > 0 && at_[i] == dims_[i].size) {
      offset_ -= dims_[i].size * dims_[i].strides[0];
      at_[i] = 0;
      --i;
      ++at_[i];
      offset_ += dims_[i].strides[0];
    }
  }

 private:
  const Dims<1>& dims_;
  std::array<uint64_t, 3> at_ = {};
  uint64_t offset_ = 0;
};

// Joins adjacent rows of the output, so that the follower is called less often.
class FollowedRange {
 public:
  FollowedRange(const CpuFollower* follower, const RunBuffers& buffers)
      : follower_(follower), buffers_(buffers) {}
  ~FollowedRange() { Flush(); }
  FollowedRange(const FollowedRange&) = delete;
  FollowedRange& operator=(const FollowedRange&) = delete;

  void Add(uint64_t first, uint64_t count) {
    if (first != first_ + count_ || count_ >= kMostElements) {
      Flush();
      first_ = first;
      count_ = 0;
    }
    count_ += count;
  }

 private:
  static constexpr uint64_t kMostElements = uint64_t{1} << 14;  // that are still in the cache

  void Flush() {
    if (count_ > 0) follower_->Run(first_, count_, buffers_);
  }

  const CpuFollower* const follower_;
  const RunBuffers& buffers_;
  uint64_t first_ = 0;
  uint64_t count_ = 0;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_OUTPUT_H_
