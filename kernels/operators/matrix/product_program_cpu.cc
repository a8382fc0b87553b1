// Matrix products in blocks, as in BLIS: a task has a range of rows and columns of one product. It
// packs each block of B into panels, and multiplies it with all panels of A.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/hash/hash.h"
#include "kernels/operators/matrix/product_output.h"
#include "kernels/operators/matrix/product_part.h"
#include "kernels/operators/matrix/product_work.h"

namespace opmill {
namespace {

class ProductProgram : public CpuProgram {
 public:
  explicit ProductProgram(std::vector<ProductWork> works) : kernels_(FindMatrixKernels()) {
    for (ProductWork& work : works) {
      cost_bytes_ += CountOf(work.batches) *
                     (sizeof(float) * (work.rows * work.columns + work.rows * work.depth +
                                       work.columns * work.depth) +
                      work.rows * work.columns * work.depth / 8);
      const auto& part =
          parts_.emplace_back(std::make_unique<ProductPart>(kernels_, std::move(work), scratch_));
      task_bytes_ = std::max(task_bytes_, sizeof(float) * part->TaskFloats());
      rounding_ =
          absl::HashOf(rounding_, part->cut().method, part->cut().block_depth, part->work().depth);
    }
    CountPhases();
  }

  bool CanKeep(size_t input) const override {
    for (const auto& part : parts_) {
      if (!part->CanKeep(input)) return false;
    }
    return true;
  }

  void Keep(size_t input, const ConstantInput& constant) override {
    kept_.clear();
    for (const auto& part : parts_) {
      part->Keep(input, constant);
      for (const auto& floats : {part->kept_a(), part->kept_b()}) {
        if (floats != nullptr) kept_.push_back(floats);
      }
    }
    CountPhases();
  }

  // One, and rows of a task must be adjacent elements.
  bool Follow(std::unique_ptr<const CpuFollower>& follower) override {
    const Dims<1>& columns = parts_[0]->work().output_columns;
    if (follower_ != nullptr || parts_[0]->has_relu() || parts_.size() > 1 || columns.size() > 1 ||
        (columns[0].strides[0] != 1 && columns[0].size > 1)) {
      return false;
    }
    if (follower->IsRelu() && parts_[0]->TakeRelu()) return true;
    follower_ = std::move(follower);
    return true;
  }

  void Run(size_t phase, uint64_t index, const RunBuffers& buffers) const override {
    const ProductPhase kind = kinds_[phase];
    size_t p = 0;
    for (; index >= parts_[p]->TasksOf(kind); ++p) index -= parts_[p]->TasksOf(kind);
    if (kind == ProductPhase::kPack) {
      parts_[p]->RunPack(index, buffers);
    } else if (kind == ProductPhase::kTransform) {
      parts_[p]->RunTransform(index, buffers);
    } else {
      RunProducts(*parts_[p], index, buffers);
    }
  }

 private:
  void CountPhases() {
    kinds_.clear();
    phases_.clear();
    for (const ProductPhase kind :
         {ProductPhase::kPack, ProductPhase::kTransform, ProductPhase::kMultiply}) {
      uint64_t tasks = 0;
      for (const auto& part : parts_) tasks += part->TasksOf(kind);
      if (tasks == 0 && kind != ProductPhase::kMultiply) continue;
      kinds_.push_back(kind);
      phases_.push_back(tasks);
    }
    const bool packs = kinds_[0] == ProductPhase::kPack;
    scratch_bytes_ = (scratch_.inputs + (packs ? scratch_.a : 0)) * sizeof(float);
  }

  void RunProducts(const ProductPart& part, uint64_t index, const RunBuffers& buffers) const {
    ProductTask task = part.TaskAt(index);
    const auto [first, end] = part.BatchesOf(index);
    FollowedRange followed(follower_.get(), buffers);
    for (uint64_t batch = first; batch < end; ++batch) {
      task.batch = PlaceOf(part.work(), batch);
      RunProduct(part, task, buffers);
      if (follower_ != nullptr) AddRows(part, task, followed);
    }
  }

  static void AddRows(const ProductPart& part, const ProductTask& task, FollowedRange& followed) {
    const uint64_t first = part.OutputOffset(task) + task.column;
    for (uint64_t r = 0; r < task.rows; ++r) {
      followed.Add(first + r * part.work().output_row_stride, task.columns);
    }
  }

  const MatrixKernels kernels_;
  ProductScratch scratch_;
  std::vector<std::unique_ptr<ProductPart>> parts_;
  std::vector<ProductPhase> kinds_;  // of phases()
  std::unique_ptr<const CpuFollower> follower_;
};

}  // namespace

std::unique_ptr<CpuProgram> MakeProductProgram(std::vector<ProductWork> works) {
  return std::make_unique<ProductProgram>(std::move(works));
}

}  // namespace opmill
