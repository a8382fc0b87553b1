#include <algorithm>
#include <cstdint>
#include <memory>

#include "shaders/pooling_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

class PoolingChecker final : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 private:
  void CheckKernel() override {
    Demand(kernel_.entry == "Pool", "is of no known kernel");
    const auto c = Constants<PoolingConstants>();
    // Where the nearest and the farthest elements are that any window reads, from the input's base,
    // which may wrap.
    uint64_t lowest = 0;
    uint64_t highest = 0;
    uint64_t output = c.output_base;
    uint64_t indices = c.indices_base;
    uint64_t results = 1;
    for (const PoolingDim& dim : c.dims) {
      Demand(dim.count >= 1 && dim.window >= 1 && dim.step >= 1 && dim.dilation >= 1,
             "has an empty dimension");
      if (!mistake_.empty()) return;
      const uint64_t first = uint64_t{dim.first} * dim.step;
      const uint64_t last = (uint64_t{dim.first} + dim.count - 1) * dim.step +
                            uint64_t{dim.window - 1} * dim.dilation;
      Demand(last <= kMost, "has windows past 32 bits");
      lowest += Clamped(first, dim) * dim.input_stride;
      highest += Clamped(last, dim) * dim.input_stride;
      output += uint64_t{dim.count - 1} * dim.output_stride;
      indices += uint64_t{dim.count - 1} * dim.indices_stride;
      results *= dim.count;
    }
    const uint32_t nearest = c.input_base + static_cast<uint32_t>(lowest);
    ReadsElement(nearest + (highest - lowest));
    Within(output, write(0), "the output");
    if (Macro("FUNCTION") == POOLING_MAX_WITH_INDICES) Within(indices, write(1), "the indices");
    Demand(results == groups_.unit_count, "counts other units than it has results");
    NeedGroups(CeilDiv(results, threads_));
    written_ = results;
  }

  static uint64_t Clamped(uint64_t padded, const PoolingDim& dim) {
    return std::min<uint64_t>(padded - std::min<uint64_t>(padded, dim.padding), dim.input_size - 1);
  }
};

}  // namespace

std::unique_ptr<DispatchChecker> MakePoolingChecker(const OperatorPlan& plan,
                                                    const Dispatch& dispatch) {
  return std::make_unique<PoolingChecker>(plan, dispatch);
}

}  // namespace opmill
