// The processor's kernels of max_pooling and average_pooling, on contiguous rows.
#ifndef OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/descriptor/tensor.h"

namespace opmill {

// A kernel computes whole vectors, and so may read and write that much behind the last column for
// each element of a step of 1 or 2, and behind the last value.
inline constexpr size_t kPoolingVectorBytes = 64;

// Rows of elements that are joined to columns, one for each element of a row, with empty columns
// before and after them.
struct PoolingRows {
  const void* const* rows = nullptr;
  size_t row_count = 0;
  size_t before = 0;
  size_t count = 0;  // of elements
  size_t after = 0;
  bool adds = false;  // to what the columns are
  // The same for several lines: their elements are `line_stride` apart, and their columns follow
  // each other.
  size_t lines = 1;
  size_t line_stride = 0;
};

// Results of a dimension, one after the other. Columns are the elements of one width, and their
// values what joins them: a maximum or a sum. Value i joins columns i * step + k * dilation, for k
// below `window`.
struct PoolingRow {
  const void* columns = nullptr;
  size_t step = 1;
  size_t window = 1;
  size_t dilation = 1;
  size_t count = 0;
  void* values = nullptr;
};

// What values are divided by: `divisor`, and if there are counts, at least 1 and `divisor` times
// the count of each.
struct PoolingDivisors {
  float divisor = 1;
  const float* counts = nullptr;
};

// Lines of values that become elements.
struct PoolingLines {
  size_t count = 0;  // of a line
  size_t lines = 1;
  size_t value_stride = 0;  // from line to line
  size_t result_stride = 0;
};

// Values have the size of elements.
struct PoolingKernels {
  // Writes up to a vector behind the columns.
  void (*join)(const PoolingRows& rows, void* columns) = nullptr;
  void (*pool)(const PoolingRow& row) = nullptr;
  // Elements from values. Maxima are not divided.
  void (*finish)(const void* values, const PoolingDivisors& divisors, const PoolingLines& lines,
                 void* results) = nullptr;
};

PoolingKernels MaxPoolingKernels(DataType type);
PoolingKernels AveragePoolingKernels();  // of FLOAT32

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_KERNELS_H_
