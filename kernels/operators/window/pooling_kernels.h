// The processor's kernels of max_pooling and average_pooling, on contiguous rows.
#ifndef OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/descriptor/tensor.h"

namespace opmill {

// A row of results. Columns are the elements of one width, and their values what joins them: a
// maximum or a sum. Element k of the window of result i is column start + i * step + k * dilation,
// if there is one.
struct PoolingRow {
  const void* columns = nullptr;
  size_t column_count = 0;
  size_t column_elements = 0;  // joined in each
  int64_t start = 0;
  int64_t step = 1;
  int64_t window = 1;
  int64_t dilation = 1;
  uint32_t divisor = 0;  // of averages; 0: the number of elements
  size_t count = 0;
  void* values = nullptr;      // memory for `count` values
  uint32_t* counts = nullptr;  // for `count` numbers
  void* results = nullptr;     // `count` elements
};

// Values have the size of elements.
struct PoolingKernels {
  // Joins elements to the columns; without elements, makes the columns empty.
  void (*join)(const void* elements, void* columns, size_t column_count) = nullptr;
  void (*pool)(const PoolingRow& row) = nullptr;
};

PoolingKernels MaxPoolingKernels(DataType type);
PoolingKernels AveragePoolingKernels();  // of FLOAT32

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_WINDOW_POOLING_KERNELS_H_
