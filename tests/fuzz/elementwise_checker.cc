#include <cstdint>
#include <memory>

#include "shaders/elementwise_constants.h"
#include "tests/fuzz/dispatch_checker.h"

namespace opmill {
namespace {

class ElementwiseChecker final : public DispatchChecker {
 public:
  ElementwiseChecker(const OperatorPlan& plan, const Dispatch& dispatch)
      : DispatchChecker(plan, dispatch), c_(Constants<ElementwiseConstants>()) {}

 private:
  void CheckKernel() override {
    const bool in_vectors = kernel_.entry == "AddVectors";
    Demand(in_vectors || kernel_.entry == "AddElements", "is of no known kernel");
    Demand(Macro("WIDTH") == (in_vectors ? 4 : 1), "has another width than its kernel");
    Demand(c_.rank >= 1 && c_.rank <= OPMILL_MAX_DIMS, "has no row, or too many dimensions");
    if (!mistake_.empty()) return;
    const ElementwiseDim& row = c_.dims[c_.rank - 1];
    const uint64_t row_step = in_vectors ? vector_ : 1;
    uint64_t units = 1;
    for (uint32_t d = 0; d < c_.rank; ++d) units *= c_.dims[d].size;
    Demand(units == groups_.unit_count, "counts other units than its dimensions have");
    Demand(row.size == CeilDiv(c_.row_length, row_step), "has other units than its row");
    Demand(groups() * threads_ <= kMost, "counts units past 32 bits");
    NeedGroups(CeilDiv(units, threads_));
    Reads("a", c_.a_base, &ElementwiseDim::a_stride, in_vectors && Macro("SPREADS_A") == 0,
          read(0));
    Reads("b", c_.b_base, &ElementwiseDim::b_stride, in_vectors && Macro("SPREADS_B") == 0,
          read(1));
    if (in_vectors) {
      Demand(Macro("SPREADS_A") == (row.a_stride == 0 ? 1 : 0), "spreads a or does not");
      Demand(Macro("SPREADS_B") == (row.b_stride == 0 ? 1 : 0), "spreads b or does not");
      Demand(write(0).format == ViewFormat::kVector, "writes other elements than vectors");
      Reads("the output", c_.output_base, &ElementwiseDim::output_stride, true, write(0));
    } else {
      Demand(ViewElementBytes(write(0).format) * vector_ == 16, "writes elements of another size");
      Within(c_.output_base + Span(&ElementwiseDim::output_stride), write(0), "the output");
    }
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

  // Elements inside vectors, or `whole` vectors.
  void Reads(absl::string_view tensor, uint64_t base, uint ElementwiseDim::*stride, bool whole,
             const BufferView& view) {
    const uint64_t farthest = base + Span(stride) + (whole ? vector_ - 1 : 0);
    Demand(farthest <= kMost, "reaches elements past 32 bits");
    Within(farthest / vector_, view, tensor);
    if (!whole) return;
    Demand(base % vector_ == 0, "starts inside a vector");
    const uint32_t rank = c_.rank;
    for (uint32_t d = 0; d < rank; ++d) {
      const uint64_t step = c_.dims[d].*stride;
      Demand(step % vector_ == 0, "steps into a vector");
      Demand(d + 1 < rank || step == vector_, "does not go from vector to vector");
    }
  }

  const ElementwiseConstants c_;
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeElementwiseChecker(const OperatorPlan& plan,
                                                        const Dispatch& dispatch) {
  return std::make_unique<ElementwiseChecker>(plan, dispatch);
}

}  // namespace opmill
