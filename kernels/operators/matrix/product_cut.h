// How a product is cut into tasks: by its shape alone, so that results do not depend on threads.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_CUT_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_CUT_H_

#include <cstdint>
#include <optional>

#include "kernels/operators/matrix/image_lines.h"
#include "kernels/operators/matrix/matrix_kernels.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

// The most of K that is summed in registers before the sum is added to the result.
inline constexpr uint64_t kBlockDepth = 384;
// A packed block of B: 384 KiB of the second cache.
inline constexpr uint64_t kBlockElements = kBlockDepth * 256;

// What runs take at most to pack an operand once, before all tasks.
inline constexpr uint64_t kMostPackedBytes = uint64_t{80} << 20;

// Offsets of an element of the batches.
struct BatchPlace {
  uint64_t copy = 0;    // of A
  uint64_t b_copy = 0;  // of B
  Offsets<4> offsets = {};
};

uint64_t CopiesOf(const ProductWork& work, ProductTensor tensor);  // that differ
// Element `index` of the batches, or of those dimensions along which this tensor changes.
BatchPlace PlaceOf(const ProductWork& work, uint64_t index,
                   std::optional<ProductTensor> copies_of = std::nullopt);

enum class ProductMethod {
  kPanels,
  kLines,   // B are patches of an image, whose lines are copied once for all taps
  kTiles,   // patches of 3 x 3 taps, by tiles of the outputs (winograd.h)
  kRow,     // one row, and the rows of B are adjacent numbers
  kDots,    // one row, and the columns of B are adjacent numbers
  kWindow,  // one channel of an image, and few rows: its lines are read in place
};

// Columns of tasks begin at multiples of it.
inline constexpr uint64_t kPanelColumns = 32;

// A part of rows or columns.
struct PartRange {
  uint64_t first = 0;
  uint64_t count = 0;
};
// Part `index` of `parts` of about equal size, which begin at multiples of `unit`.
PartRange PartAt(uint64_t total, uint64_t unit, uint64_t parts, uint64_t index);

// How a product is cut.
struct ProductCut {
  ProductMethod method = ProductMethod::kPanels;
  uint64_t panel_rows = 1;
  uint64_t row_panels = 1;
  uint64_t batches = 1;  // of a task
  uint64_t rows = 1;     // the most of a task
  uint64_t columns = 1;
  uint64_t block_depth = 1;
  uint64_t bands = 1;  // of lines of an image: how often `lines` are in a plane of outputs
  ImageLines lines;
  std::optional<WindowShape> window;  // of kWindow: a plane that is read in place
  uint64_t band_lines = 1;            // of outputs
  uint64_t tasks = 0;
  bool has_direct_a = false;  // read in place
  bool has_direct_b = false;
  // Of kPanels and kLines: the rows fill vectors, instead of the columns. Panels of A are as wide
  // as those of B.
  bool has_row_lanes = false;
  bool packs_first = false;  // A is packed before, in scratch
  uint64_t scratch = 0;      // where: in floats of ProductScratch::a
  uint64_t pack_rows = 0;    // of a task that packs A; kTiles multiplies so many at a time
  uint64_t packs = 0;        // such tasks
  // Of kTiles: the parts of the channels whose inputs are transformed before; 0 if each task
  // transforms its own.
  uint64_t input_parts = 0;
  uint64_t input_scratch = 0;  // where: in floats of ProductScratch::inputs
  uint64_t transforms = 0;     // such tasks
};

// Whether a task computes lines of an image.
inline bool HasBands(ProductMethod method) {
  return method == ProductMethod::kLines || method == ProductMethod::kTiles;
}

// Parts of the columns that are different tasks.
uint64_t ColumnPartsOf(const ProductWork& work, const ProductCut& cut);

// The floats of scratch that products take. Those of A come last: nothing takes them once A is
// kept.
struct ProductScratch {
  uint64_t inputs = 0;
  uint64_t a = 0;
};

// `scratch` is what is taken already; the product may take more.
ProductCut CutOf(const ProductWork& work, const MatrixKernels& kernels, ProductScratch& scratch);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_CUT_H_
