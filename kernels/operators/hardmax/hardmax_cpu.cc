// hardmax: the fold finds where the ones go. Zeros are written before the elements of a task are
// folded, the ones afterwards.
#include <algorithm>
#include <memory>

#include "kernels/cpu/gather.h"
#include "kernels/cpu/move_kernels.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/fold_program.h"

namespace opmill {
namespace {

class OnesOutput : public FoldOutput {
 public:
  explicit OnesOutput(const FoldWork& work)
      : FoldOutput(Holds::kElements),
        kept_(work.kept),
        reduced_(work.reduced),
        count_(CountOf(reduced_)),
        element_bytes_(ElementBytes(work.type)),
        one_(work.type == DataType::kFloat32 ? 0x3F80'0000 : 0x3C00),
        bytes_(CountOf(kept_) * count_ * element_bytes_) {}

  uint64_t cost_bytes() const override { return bytes_; }

  bool Divide(FoldMode mode, uint64_t splits) override {
    mode_ = mode;
    clears_ = HasZerosSideBySide(splits);
    streams_columns_ = clears_ && StreamsZeros() && splits == 1 && mode == FoldMode::kColumns;
    return clears_;
  }

  void Clear(uint64_t result, uint64_t width, uint64_t begin, uint64_t end,
             const RunBuffers& buffers) const override {
    if (!clears_ || streams_columns_) return;
    const auto clear = [&](uint64_t place, uint64_t count) { ClearStep(place, count, buffers); };
    Walk kept(kept_, result);
    if (mode_ == FoldMode::kPackedColumns) {
      clear(kept.offset(kOutputTensor), width * count_);
    } else if (mode_ == FoldMode::kColumns) {
      Walk reduced(reduced_, begin);
      for (uint64_t i = begin; i < end; ++i, reduced.Next()) {
        clear(kept.offset(kOutputTensor) + reduced.offset(kOutputTensor), width);
      }
    } else {
      const uint64_t run = reduced_.back().size;
      for (uint64_t i = 0; i < width; ++i, kept.Next()) {
        for (uint64_t position = begin; position < end;) {
          const uint64_t count = std::min(run - position % run, end - position);
          clear(kept.offset(kOutputTensor) + Walk(reduced_, position).offset(kOutputTensor), count);
          position += count;
        }
      }
    }
  }

  void Store(const std::byte* results, uint64_t result, uint64_t width,
             const RunBuffers& buffers) const override {
    if (!streams_columns_) return StoreStep(results, result, width, buffers);
    const auto* const positions = reinterpret_cast<const uint32_t*>(results);
    const uint64_t first = Walk(kept_, result).offset(kOutputTensor);
    Walk reduced(reduced_, 0);
    for (uint64_t i = 0; i < count_; ++i, reduced.Next()) {
      StreamOnes({positions, width}, static_cast<uint32_t>(i), one_,
                 buffers.outputs[0] + (first + reduced.offset(kOutputTensor)) * element_bytes_,
                 element_bytes_);
    }
  }

  void ClearStep(uint64_t element, uint64_t count, const RunBuffers& buffers) const override {
    WriteZeros(buffers.outputs[0] + element * element_bytes_, count * element_bytes_,
               StreamsZeros());
  }

  // Only the ones.
  void StoreStep(const std::byte* results, uint64_t result, uint64_t width,
                 const RunBuffers& buffers) const override {
    const auto* const positions = reinterpret_cast<const uint32_t*>(results);
    const uint64_t step = reduced_.size() == 1 ? reduced_[0].strides[kOutputTensor] : 0;
    Walk kept(kept_, result);
    for (uint64_t i = 0; i < width; ++i, kept.Next()) {
      const uint64_t place =
          step > 0 ? positions[i] * step : Walk(reduced_, positions[i]).offset(kOutputTensor);
      CopyElement(buffers.outputs[0] + (kept.offset(kOutputTensor) + place) * element_bytes_,
                  reinterpret_cast<const std::byte*>(&one_), element_bytes_);
    }
  }

  void FinishTask() const override { FinishStreams(); }

 private:
  bool StreamsZeros() const { return bytes_ >= kStreamedBytes; }

  // Whether the outputs of the elements that a task folds are adjacent too.
  bool HasZerosSideBySide(uint64_t splits) const {
    const auto has_unit_step = [](const SpaceDims& dims) {
      return !dims.empty() && dims.back().strides[kOutputTensor] == 1;
    };
    switch (mode_) {
      case FoldMode::kRows:
        return has_unit_step(reduced_);
      case FoldMode::kColumns:
        return has_unit_step(kept_);
      case FoldMode::kPackedColumns:
        return reduced_.size() == 1 && has_unit_step(reduced_) && splits == 1 &&
               kept_.size() == 1 && kept_[0].strides[kOutputTensor] == count_;
      case FoldMode::kPackedRows:
        break;
    }
    return false;
  }

  const SpaceDims kept_;
  const SpaceDims reduced_;
  const uint64_t count_;
  const uint32_t element_bytes_;
  const uint32_t one_;
  const uint64_t bytes_;
  FoldMode mode_ = FoldMode::kRows;
  bool clears_ = false;
  // Columns that one task folds: zeros and ones are written together, after folding.
  bool streams_columns_ = false;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuHardmax(const OperatorDesc& operator_desc) {
  const HardmaxDesc desc = HardmaxDesc::From(operator_desc);
  const IterationSpace space = SplitDims(desc.input, desc.axes, *desc.output);
  const FoldWork work = InMemoryOrder({.function = ReduceFunction::kArgMax,
                                       .type = desc.input.data_type,
                                       .kept = space.kept,
                                       .reduced = space.reduced});
  return MakeFoldProgram(work, std::make_unique<OnesOutput>(work));
}

}  // namespace opmill
