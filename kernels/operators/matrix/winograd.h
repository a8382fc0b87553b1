// 3x3 convolutions as 36 products for tiles of 4 x 4 outputs (winograd_kernels.h).
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_WINOGRAD_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_WINOGRAD_H_

#include <cstdint>

#include "kernels/operators/matrix/matrix_kernels.h"
#include "kernels/operators/matrix/product_cut.h"
#include "kernels/operators/matrix/product_part.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

// Whether tiles are worth their transformation. Of `cut`, the panels are known.
bool CanTile(const ProductWork& work, const ProductCut& cut);

// Cuts the lines of outputs into bands of tiles, and the rows into groups that are so small that
// their products stay in the cache.
void CutTiles(const ProductWork& work, const MatrixKernels& kernels, ProductCut& cut);

// The most TaskMemory that a task takes for tiles, in floats.
uint64_t TileTaskFloats(const ProductWork& work, const MatrixKernels& kernels,
                        const ProductCut& cut);

// The floats of A in tiles: transformed, in panels; as it is; and the largest magnitude of each
// row.
uint64_t TiledFloats(const ProductWork& work, const ProductCut& cut);
// Writes the rows of a task, which begin at a group.
void WriteTiled(const ProductPart& part, const ProductTask& task, const Elements& a, float* to);

// Finds a place for transformed inputs if tasks share them.
void TransformFirst(const ProductWork& work, const MatrixKernels& kernels, ProductCut& cut,
                    ProductScratch& scratch);
// Transforms the inputs of a task, of one of cut.input_parts parts of the channels.
void TransformTiles(const ProductPart& part, const ProductTask& task, uint64_t input_part,
                    const Elements& b, float* transformed);

// The rows and columns of a task.
void MultiplyTiles(const ProductPart& part, const ProductTask& task, const RunBuffers& buffers,
                   const ProductBlock& result);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_WINOGRAD_H_
