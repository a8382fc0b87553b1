#include <cstdint>
#include <memory>

#include "tests/fuzz/dispatch_checker.h"

namespace opmill {
namespace {

class CumulativeSummationChecker final : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 private:
  void CheckKernel() override {
    Demand(c_.kept_rank <= OPMILL_MAX_DIMS && c_.reduced_rank <= 1, "has too many dimensions");
    if (!mistake_.empty()) return;
    uint64_t sequences = 1;
    for (uint32_t d = 0; d < c_.kept_rank; ++d) sequences *= c_.kept[d].size;
    Demand(sequences == c_.unit_count, "counts other units than it has sequences");
    Demand(c_.item_count == (c_.reduced_rank == 0 ? 1 : c_.reduced[0].size),
           "counts other items than a sequence has");
    const bool sums_blocks = kernel_.entry == "SumBlocks";
    Reaches("the input", c_.input_base, &Dim::input_stride, read(0), vector_);
    if (!sums_blocks) {
      Reaches("the output", c_.output_base, &Dim::output_stride, write(0), 1);
      written_ = sequences * c_.item_count;
    }
    if (kernel_.entry == "ScanSequences") {
      Demand(c_.lane_units >= 1, "takes no units");
      NeedGroups(CeilDiv(sequences, uint64_t{c_.lane_units} * threads_));
      return;
    }
    Demand(sums_blocks || kernel_.entry == "ScanBlocks", "is of no known kernel");
    Demand(c_.split_items >= 1 && c_.splits == CeilDiv(c_.item_count, c_.split_items),
           "has blocks that do not cover a sequence");
    NeedGroups(sequences * c_.splits);
    if (!sums_blocks && Macro("CARRIES") == 0) return;
    const uint64_t last = (sequences - 1) * c_.record_stride + c_.record_base + c_.splits - 1;
    Demand(c_.record_base + c_.splits <= c_.record_stride, "has records of another sequence");
    Within(last, sums_blocks ? write(0) : read(1), "the sums of blocks");
  }

  // The strides along a sequence may be negative: offsets wrap at 32 bits.
  void Reaches(absl::string_view tensor, uint32_t base, uint Dim::*stride, const BufferView& view,
               uint64_t elements) {
    uint64_t kept = 0;
    for (uint32_t d = 0; d < c_.kept_rank; ++d) {
      kept += uint64_t{c_.kept[d].size - 1} * (c_.kept[d].*stride);
    }
    const uint32_t along = c_.reduced_rank == 0 ? 0 : c_.reduced[0].*stride;
    const uint32_t last = base + (c_.item_count - 1) * along;
    Within((base + kept) / elements, view, tensor);
    Within((last + kept) / elements, view, tensor);
  }
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeCumulativeSummationChecker(const OperatorPlan& plan,
                                                                const Dispatch& dispatch) {
  return std::make_unique<CumulativeSummationChecker>(plan, dispatch);
}

}  // namespace opmill
