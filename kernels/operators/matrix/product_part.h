// One product of a program: what is computed, how it is cut, and what is packed of its operands.
#ifndef OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_PART_H_
#define OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_PART_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/kept_constants.h"
#include "kernels/operators/matrix/matrix_kernels.h"
#include "kernels/operators/matrix/product_cut.h"
#include "kernels/operators/matrix/product_packing.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {

// What a task computes.
struct ProductTask {
  BatchPlace batch;
  uint64_t row = 0;
  uint64_t rows = 0;
  uint64_t column = 0;
  uint64_t columns = 0;
  // Of kLines and kTiles, which column and columns are.
  uint64_t z = 0;
  uint64_t line = 0;
  uint64_t lines = 0;
};

// In their order. All but the last may have no tasks.
enum class ProductPhase {
  kPack,       // A
  kTransform,  // the inputs of kTiles
  kMultiply,
};

// Immutable after Keep and TakeRelu.
class ProductPart {
 public:
  // `scratch`: as CutOf. It outlives the part.
  ProductPart(const MatrixKernels& kernels, ProductWork work, ProductScratch& scratch)
      : kernels_(kernels),
        scratch_(scratch),
        work_(std::move(work)),
        cut_(CutOf(work_, kernels, scratch)) {}

  const MatrixKernels& kernels() const { return kernels_; }
  const ProductWork& work() const { return work_; }
  const ProductCut& cut() const { return cut_; }

  // As those of CpuProgram.
  bool CanKeep(size_t input) const;
  void Keep(size_t input, const ConstantInput& constant);
  bool keeps_a() const { return kept_a_ != nullptr; }
  bool keeps_b() const { return kept_b_ != nullptr; }
  // What runs would pack. Null if it does not keep it.
  const std::shared_ptr<const KeptFloats>& kept_a() const { return kept_a_; }
  const std::shared_ptr<const KeptFloats>& kept_b() const { return kept_b_; }

  // Lets the kernel compute relu of all results. False if it cannot.
  bool TakeRelu() {
    has_relu_ = WritesInPlace(work_) &&
                (cut_.method == ProductMethod::kPanels || cut_.method == ProductMethod::kLines);
    return has_relu_;
  }
  bool has_relu() const { return has_relu_; }

  uint64_t TasksOf(ProductPhase phase) const {
    if (phase == ProductPhase::kPack) return keeps_a() ? 0 : cut_.packs;
    return phase == ProductPhase::kTransform ? cut_.transforms : cut_.tasks;
  }
  ProductTask TaskAt(uint64_t index) const;  // of element 0 of BatchesOf
  // The elements of the batches that a task computes, one after the other: first and end.
  std::pair<uint64_t, uint64_t> BatchesOf(uint64_t index) const;

  // TaskMemory that a task takes.
  uint64_t TaskFloats() const;

  void RunPack(uint64_t index, const RunBuffers& buffers) const;
  void RunTransform(uint64_t index, const RunBuffers& buffers) const;

  Elements InputOf(size_t input, const RunBuffers& buffers) const {
    return {buffers.inputs[input], work_.is_half};
  }
  uint64_t OutputOffset(const ProductTask& task) const;
  // What kTransform has made of the inputs.
  float* Transformed(const RunBuffers& buffers) const {
    return reinterpret_cast<float*>(buffers.scratch) + cut_.input_scratch;
  }

  // Whether each task packs its rows of A.
  bool PacksA() const { return !cut_.packs_first && !cut_.has_direct_a && !keeps_a(); }
  // A that is packed before. The panels of a block of K are together.
  const float* PackedA(const ProductTask& task, const RunBuffers& buffers) const;
  // The panels of the task's rows.
  void PackRows(const ProductTask& task, const RunBuffers& buffers, uint64_t k0, uint64_t depth,
                float* to) const;
  // The weights of the task's rows, as kWindow reads them.
  void WriteWeights(const ProductTask& task, const RunBuffers& buffers, float* to) const;
  const float* KeptB(const ProductTask& task, uint64_t k0) const;
  // Columns [column, column + columns) of the task. `row` has room for them.
  void PackB(const ProductTask& task, const RunBuffers& buffers, uint64_t column, uint64_t columns,
             uint64_t k0, uint64_t depth, float* row, float* to) const;

 private:
  // All that the packed form depends on, beside the elements. It is the same for most shapes of the
  // other operand.
  std::string FormOf(ProductTensor tensor) const;
  void WriteA(const std::byte* bytes, float* to) const;
  void WriteB(const std::byte* bytes, float* to) const;
  template <typename Pack>
  void ForEachCopy(ProductTensor tensor, const Pack& pack) const;
  float* ScratchOfA(const RunBuffers& buffers) const {
    return reinterpret_cast<float*>(buffers.scratch) + scratch_.inputs + cut_.scratch;
  }
  uint64_t AFloats() const;
  uint64_t PaddedColumns() const;
  // `packed` is that of all copies.
  void PackA(const ProductTask& task, const RunBuffers& buffers, float* packed) const;
  uint64_t OffsetOfB(const ProductTask& task, uint64_t k0) const;

  const MatrixKernels& kernels_;
  const ProductScratch& scratch_;
  const ProductWork work_;
  const ProductCut cut_;
  bool has_relu_ = false;
  std::shared_ptr<const KeptFloats> kept_a_;
  std::shared_ptr<const KeptFloats> kept_b_;
};

// Computes the product of a task.
void RunProduct(const ProductPart& part, const ProductTask& task, const RunBuffers& buffers);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_MATRIX_PRODUCT_PART_H_
