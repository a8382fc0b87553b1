#include <algorithm>
#include <cstdint>
#include <memory>

#include "shaders/elementwise_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

constexpr uint ElementwiseDim::*kStrides[] = {&ElementwiseDim::stride0, &ElementwiseDim::stride1,
                                              &ElementwiseDim::stride2, &ElementwiseDim::stride3,
                                              &ElementwiseDim::stride4, &ElementwiseDim::stride5,
                                              &ElementwiseDim::stride6, &ElementwiseDim::stride7};
constexpr uint ElementwiseConstants::*kBases[] = {
    &ElementwiseConstants::base0, &ElementwiseConstants::base1, &ElementwiseConstants::base2,
    &ElementwiseConstants::base3, &ElementwiseConstants::base4, &ElementwiseConstants::base5,
    &ElementwiseConstants::base6, &ElementwiseConstants::base7};

class ElementwiseChecker final : public DispatchChecker {
 public:
  ElementwiseChecker(const OperatorDesc& desc, const OperatorPlan& plan, const Dispatch& dispatch)
      : DispatchChecker(plan, dispatch), desc_(desc), c_(Constants<ElementwiseConstants>()) {}

 private:
  void CheckKernel() override {
    const uint64_t width = Macro("WIDTH");
    in_quads_ = width == 4;
    Demand(kernel_.entry == "Map" && (in_quads_ || width == 1), "is of no known kernel");
    Demand(c_.rank >= 1 && c_.rank <= OPMILL_MAX_DIMS, "has no row, or too many dimensions");
    if (!mistake_.empty()) return;
    const ElementwiseDim& row = c_.dims[c_.rank - 1];
    uint64_t units = 1;
    for (uint32_t d = 0; d < c_.rank; ++d) units *= c_.dims[d].size;
    Demand(units == groups_.unit_count, "counts other units than its dimensions have");
    Demand(row.size == CeilDiv(c_.row_length, width), "has other units than its row");
    Demand(groups() * threads_ <= kMost, "counts units past 32 bits");
    NeedGroups(CeilDiv(units, threads_));
    for (size_t i = 0; i < desc_.inputs.size(); ++i) Reads(i);
    Writes();
    written_ = units / row.size * c_.row_length;
  }

  uint64_t Span(uint ElementwiseDim::*stride) const {
    uint64_t span = 0;
    for (uint32_t d = 0; d < c_.rank; ++d) {
      const ElementwiseDim& dim = c_.dims[d];
      span += uint64_t{dim.size - 1} * dim.*stride;
    }
    return span;
  }

  // Quads go from one to the next, and start at multiples of four.
  void CheckQuads(uint64_t base, uint ElementwiseDim::*stride) {
    Demand(base % 4 == 0, "starts inside a quad");
    for (uint32_t d = 0; d < c_.rank; ++d) {
      const uint64_t step = c_.dims[d].*stride;
      Demand(step % 4 == 0, "steps into a quad");
      Demand(d + 1 < c_.rank || step == 4, "does not go from quad to quad");
    }
  }

  // Elements, or quads unless one element stands for the row. Of the last quad of a row only the
  // elements that the row has are read, beyond their vector.
  void Reads(size_t i) {
    const uint64_t vector = 16 / ElementBytes(desc_.inputs[i].data_type);
    const bool quads = in_quads_ && c_.dims[c_.rank - 1].*kStrides[i] != 0;
    const uint64_t base = c_.*kBases[i];
    const uint64_t last = quads ? (c_.row_length - 1) % 4 : 0;
    const uint64_t farthest = base + Span(kStrides[i]) + last;
    Demand(farthest + 3 <= kMost, "reaches elements past 32 bits");
    Within(farthest / vector, read(i), "an input");
    if (quads) CheckQuads(base, kStrides[i]);
  }

  void Writes() {
    const uint32_t bytes = ElementBytes(OutputsOf(desc_)[0].data_type);
    Demand(Macro("OUTPUT_BYTES") == bytes, "writes elements of another size");
    const uint64_t view_bytes = ViewElementBytes(write(0).format);
    const uint64_t farthest = c_.output_base + Span(&ElementwiseDim::output_stride);
    if (in_quads_) {
      Demand(view_bytes == std::min<uint64_t>(4 * bytes, 16), "writes no quads");
      const uint64_t last = bytes == 8 ? (c_.row_length - 1) % 4 : 0;
      Within((farthest + last) * bytes / view_bytes, write(0), "the output");
      CheckQuads(c_.output_base, &ElementwiseDim::output_stride);
    } else {
      Demand(view_bytes == bytes, "writes elements of another size");
      Within(farthest, write(0), "the output");
    }
  }

  const OperatorDesc& desc_;
  const ElementwiseConstants c_;
  bool in_quads_ = false;
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeElementwiseChecker(const OperatorDesc& validated,
                                                        const OperatorPlan& plan,
                                                        const Dispatch& dispatch) {
  return std::make_unique<ElementwiseChecker>(validated, plan, dispatch);
}

}  // namespace opmill
