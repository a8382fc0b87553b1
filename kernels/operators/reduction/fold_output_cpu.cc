#include <cstring>

#include "kernels/cpu/gather.h"
#include "kernels/operators/reduction/fold_output.h"

namespace opmill {
namespace {

class ResultsOutput : public FoldOutput {
 public:
  ResultsOutput(const FoldWork& work, uint32_t result_bytes)
      : FoldOutput(Holds::kResults),
        kept_(work.kept),
        result_bytes_(result_bytes),
        widens_(GivesIndices(work.function) && result_bytes == 8) {}

  void Store(const std::byte* results, uint64_t result, uint64_t width,
             const RunBuffers& buffers) const override {
    std::byte* const output = buffers.outputs[0];
    Walk kept(kept_, result);
    if (widens_) {
      for (uint64_t i = 0; i < width; ++i, kept.Next()) {
        const uint64_t position = reinterpret_cast<const uint32_t*>(results)[i];
        std::memcpy(output + kept.offset(kOutputTensor) * 8, &position, 8);
      }
    } else if (AreSideBySide(result, width)) {
      std::memcpy(output + kept.offset(kOutputTensor) * result_bytes_, results,
                  width * result_bytes_);
    } else {
      for (uint64_t i = 0; i < width; ++i, kept.Next()) {
        CopyElement(output + kept.offset(kOutputTensor) * result_bytes_,
                    results + i * result_bytes_, result_bytes_);
      }
    }
  }

 private:
  bool AreSideBySide(uint64_t result, uint64_t width) const {
    if (kept_.empty()) return true;
    const SpaceDim& last = kept_.back();
    return last.strides[kOutputTensor] == 1 && result % last.size + width <= last.size;
  }

  const SpaceDims kept_;
  const uint32_t result_bytes_;
  const bool widens_;
};

}  // namespace

std::unique_ptr<FoldOutput> MakeResultsOutput(const FoldWork& work, uint32_t result_bytes) {
  return std::make_unique<ResultsOutput>(work, result_bytes);
}

}  // namespace opmill
