// The processor's kernels of matrix products, without descriptors. All numbers are FLOAT32.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/operators/matrix/window_kernels.h"
#include "kernels/operators/matrix/winograd_kernels.h"

namespace opmill {

// What follows the sum over all blocks of K: result = alpha * sum + row_addends[m] + beta *
// addend[m, n], and then relu of it.
struct ProductFinish {
  float alpha = 1;
  const float* row_addends = nullptr;  // one for each row, or null
  float beta = 0;
  const float* addend = nullptr;  // a matrix with adjacent columns, or null
  size_t addend_stride = 0;       // from row to row
  bool has_relu = false;
};

// result (+)= a * b for one block of K. Rows of A are processed in panels of `panel_rows` (the last
// one may have fewer). In a packed panel the elements of a column are together; otherwise the
// elements of a row are, and the rows are `a_stride` apart. B consists of panels of panel_columns
// columns, each of which has the elements of a row of B together; the rows are `b_stride` apart, or
// row k is at b_offsets[k], and the panels are `b_panel` elements apart.
//
// With a_offsets, element (i, k) of A is a[a_offsets[k] + i], for each strip of `strip_rows` rows;
// the next strip is `strip_stride` further. Then columns are multiples of `lanes`.
struct ProductBlock {
  size_t rows = 0;
  size_t columns = 0;
  size_t depth = 0;  // of the block
  const float* a = nullptr;
  size_t panel_rows = 0;
  size_t a_stride = 0;  // 0: packed
  const uint32_t* a_offsets = nullptr;
  size_t strip_rows = 0;
  size_t strip_stride = 0;
  const float* b = nullptr;
  size_t b_stride = 0;
  const uint32_t* b_offsets = nullptr;
  size_t b_panel = 0;
  bool b_comes_once = false;  // all rows are multiplied with a panel of B before the next one
  // If not null, the first panel of A copies B here, in packed panels, which the others read. B has
  // no offsets, and whole panels.
  float* b_copy = nullptr;
  // If not 0, columns are those of lines: each has so many in the result, and begins `line_width`
  // elements of B after the one before. Then B has offsets, and there is one block of K and no
  // addend.
  size_t line_columns = 0;
  size_t line_width = 0;
  float* result = nullptr;
  size_t result_stride = 0;
  bool is_first = true;  // replaces the result instead of adding to it
  bool is_last = true;   // applies `finish`
  ProductFinish finish;
};

// Lines, each with zeros before and after it. They follow each other.
struct LineCopy {
  const float* from = nullptr;
  size_t from_stride = 0;  // from line to line
  size_t lines = 1;
  size_t step = 1;  // every element, or every second one
  size_t before = 0;
  size_t count = 0;
  size_t after = 0;
};

struct MatrixKernels {
  size_t panel_rows = 0;     // the most rows of a panel of A
  size_t strip_rows = 0;     // the most rows of a tile of strips
  size_t lanes = 0;          // of a vector
  size_t panel_columns = 0;  // of B
  void (*multiply)(const ProductBlock& block) = nullptr;
  // Writes `count` numbers of a row of B into its panels: `to` is the row in the first panel. The
  // rest of the last panel becomes zero.
  void (*pack_row)(const float* from, size_t count, float* to, size_t panel_stride) = nullptr;
  // to[k * to_stride + r] = from[r * from_stride + k], for `depth` numbers of each row.
  void (*transpose)(const float* from, size_t from_stride, size_t rows, size_t depth, float* to,
                    size_t to_stride) = nullptr;
  // Writes up to a vector behind the last line.
  void (*copy_lines)(const LineCopy& copy, float* to) = nullptr;
  // result[i] = sum of weights[t] * taps[t][i] over `tap_count`, plus addend. Reads up to 64
  // numbers behind the end of each of taps[].
  void (*weigh)(const float* const* taps, const float* weights, size_t tap_count, float addend,
                size_t count, float* result) = nullptr;
  // sums[i] = sum of a[k] * b[k * b_stride + i] over `depth`
  void (*weigh_rows)(const float* a, const float* b, size_t b_stride, size_t depth, size_t count,
                     float* sums) = nullptr;
  // sums[r] = sum of a[k] * b[r * b_stride + k] over `depth`: that of block_depth of them after
  // the other
  void (*dots)(const float* a, const float* b, size_t b_stride, size_t rows, size_t depth,
               size_t block_depth, float* sums) = nullptr;
  WindowKernel window = nullptr;  // may be null
  WinogradKernels winograd;
};

// Of the best instruction set.
MatrixKernels FindMatrixKernels();

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_MATRIX_KERNELS_H_
