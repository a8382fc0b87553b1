#include <memory>

#include "kernels/cpu/gather.h"
#include "kernels/operators/reduction/fold_program.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/operators/top_k/top_k_program.h"
#include "kernels/operators/top_k/top_k_ranks.h"

namespace opmill {
namespace {

// The best element of each sequence, and its position.
class BestOutput : public FoldOutput {
 public:
  BestOutput(const FoldWork& work, uint32_t index_bytes)
      : FoldOutput(Holds::kOther),
        kept_(work.kept),
        reduced_(work.reduced),
        element_bytes_(ElementBytes(work.type)),
        index_bytes_(index_bytes) {}

  void Store(const std::byte* results, uint64_t result, uint64_t width,
             const RunBuffers& buffers) const override {
    const uint64_t step = reduced_.size() == 1 ? reduced_[0].strides[kInputTensor] : 0;
    Walk kept(kept_, result);
    for (uint64_t i = 0; i < width; ++i, kept.Next()) {
      const uint64_t position = reinterpret_cast<const uint32_t*>(results)[i];
      const uint64_t place = kept.offset(kInputTensor) + position * step;
      CopyElement(buffers.outputs[0] + kept.offset(kOutputTensor) * element_bytes_,
                  buffers.inputs[0] + place * element_bytes_, element_bytes_);
      CopyElement(buffers.outputs[1] + kept.offset(kIndicesTensor) * index_bytes_,
                  reinterpret_cast<const std::byte*>(&position), index_bytes_);
    }
  }

 private:
  const SpaceDims kept_;
  const SpaceDims reduced_;  // the axis; none if its size is 1
  const uint32_t element_bytes_;
  const uint32_t index_bytes_;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuTopK(const OperatorDesc& operator_desc) {
  const TopKDesc desc = TopKDesc::From(operator_desc);
  const bool largest = desc.axis_direction == AxisDirection::kDecreasing;
  const uint32_t index_bytes = ElementBytes(desc.output_indices->data_type);
  const IterationSpace space =
      SplitDims(desc.input, {desc.axis}, *desc.output_values, &*desc.output_indices);
  if (desc.k > 1) {
    return MakeTopKProgram({.type = desc.input.data_type,
                            .largest = largest,
                            .index_bytes = index_bytes,
                            .kept = space.kept,
                            .axis = space.reduced[0],
                            .ranks = RankDim(desc)});
  }
  const FoldWork work =
      InMemoryOrder({.function = largest ? ReduceFunction::kArgMax : ReduceFunction::kArgMin,
                     .type = desc.input.data_type,
                     .nan_is_last = !largest,
                     .kept = space.kept,
                     .reduced = space.reduced});
  return MakeFoldProgram(work, std::make_unique<BestOutput>(work, index_bytes));
}

}  // namespace opmill
