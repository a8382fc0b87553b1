#include <cstdint>
#include <memory>

#include "shaders/cumulative_summation_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

class CumulativeSummationChecker final : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 private:
  void CheckKernel() override {
    const auto c = Constants<CumulativeSummationConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    Demand(c.length >= 1, "has empty sequences");
    if (!mistake_.empty()) return;
    const uint64_t sequences = Product(kept);
    Demand(sequences == groups_.unit_count, "counts other units than it has sequences");
    const bool sums_blocks = kernel_.entry == "SumBlocks";
    // The strides along a sequence may be negative: offsets wrap at 32 bits.
    const auto reaches = [&](absl::string_view tensor, uint32_t base, uint32_t stride,
                             uint64_t outer, const BufferView& view, uint64_t elements) {
      const uint32_t last = base + (c.length - 1) * stride;
      Within((base + outer) / elements, view, tensor);
      Within((last + outer) / elements, view, tensor);
    };
    reaches("the input", c.input_base, c.input_stride, Span(kept, &Dim::input_stride), read(0),
            vector_);
    if (!sums_blocks) {
      reaches("the output", c.output_base, c.output_stride, Span(kept, &Dim::output_stride),
              write(0), 1);
      written_ = sequences * c.length;
    }
    if (kernel_.entry == "ScanSequences") {
      NeedGroups(CeilDiv(sequences, threads_));
      return;
    }
    Demand(sums_blocks || kernel_.entry == "ScanBlocks", "is of no known kernel");
    Demand(c.block_length >= 1 && c.blocks == CeilDiv(c.length, c.block_length),
           "has blocks that do not cover a sequence");
    NeedGroups(sequences * c.blocks);
    if (!sums_blocks && Macro("CARRIES") == 0) return;
    const uint64_t last = (sequences - 1) * c.record_stride + c.first_record + c.blocks - 1;
    Demand(c.first_record + c.blocks <= c.record_stride, "has records of another sequence");
    Within(last, sums_blocks ? write(0) : read(1), "the sums of blocks");
  }
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeCumulativeSummationChecker(const OperatorPlan& plan,
                                                                const Dispatch& dispatch) {
  return std::make_unique<CumulativeSummationChecker>(plan, dispatch);
}

}  // namespace opmill
