#include <cstdint>
#include <memory>

#include "shaders/matrix_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

class MatrixChecker final : public DispatchChecker {
 public:
  MatrixChecker(const OperatorPlan& plan, const Dispatch& dispatch)
      : DispatchChecker(plan, dispatch), c_(Constants<MatrixConstants>()) {}

 private:
  // The extremes of an offset: strides may be negative, and wrap.
  struct Reach {
    int64_t low = 0;
    int64_t high = 0;
    void Add(uint64_t count, uint32_t stride, bool may_be_negative = false) {
      const int64_t step = may_be_negative ? static_cast<int32_t>(stride) : int64_t{stride};
      (step < 0 ? low : high) += static_cast<int64_t>(count - 1) * step;
    }
  };

  void Need(uint32_t base, const Reach& reach, const BufferView& view, absl::string_view what) {
    Demand(int64_t{base} + reach.low >= 0, "begins before a view");
    Within(static_cast<uint64_t>(int64_t{base} + reach.high), view, what);
  }

  void CheckKernel() override {
    const bool is_image = Macro("IMAGE") == 1;
    uint64_t batches = 1;
    Reach a, b, addend, output;
    for (const MatrixBatch& batch : c_.batches) {
      Demand(batch.size >= 1, "has no batch");
      if (!mistake_.empty()) return;
      batches *= batch.size;
      a.Add(batch.size, batch.a_stride);
      b.Add(batch.size, batch.b_stride);
      addend.Add(batch.size, batch.addend_stride);
      output.Add(batch.size, batch.output_stride);
    }
    Demand(c_.rows >= 1 && c_.columns >= 1 && c_.depth >= 1, "multiplies nothing");
    if (!mistake_.empty()) return;
    a.Add(c_.rows, c_.a_row_stride);
    addend.Add(c_.rows, c_.addend_row_stride);
    addend.Add(c_.columns, c_.addend_column_stride);
    output.Add(c_.rows, c_.output_row_stride);
    if (is_image) {
      CheckImage(a, b, output);
    } else {
      a.Add(c_.depth, c_.a_depth_stride);
      b.Add(c_.depth, c_.b_depth_stride);
      b.Add(c_.columns, c_.b_column_stride);
      output.Add(c_.columns, c_.output_column_stride);
    }
    Need(c_.a_base, a, read(0), "A");
    Need(c_.b_base, b, read(1), "B");
    if (c_.has_addend != 0) Need(c_.addend_base, addend, read(2), "the addend");
    Need(c_.output_base, output, write(0), "the output");
    written_ = batches * c_.rows * c_.columns;
    if (kernel_.entry == "SumEach") {
      Demand(groups_.unit_count == written_, "counts other units than results");
      NeedGroups(CeilDiv(written_, threads_));
      return;
    }
    Demand(kernel_.entry == "Multiply", "is of no known kernel");
    const uint64_t side = 8 * Macro("HALVES");
    const uint64_t tile = 4 * Macro("HALVES") * side;
    Demand(threads_ == side * side, "has other lanes than its tile");
    Demand(c_.row_tiles == CeilDiv(c_.rows, tile) && c_.column_tiles == CeilDiv(c_.columns, tile),
           "has tiles that do not cover the output");
    NeedGroups(batches * c_.row_tiles * c_.column_tiles);
  }

  void CheckImage(Reach& a, Reach& b, Reach& output) {
    uint64_t taps = 1;
    uint64_t columns = 1;
    uint64_t step = c_.block_channels;
    for (const MatrixAxis& axis : c_.axes) {
      Demand(axis.taps >= 1 && axis.outputs >= 1 && axis.inputs >= 1 && axis.spread >= 1,
             "has an empty dimension");
      Demand(axis.block_step < axis.taps, "steps over more than a dimension");
      Demand(axis.spread == 1 || Macro("SPREAD") == 1, "spreads without the code for it");
      if (!mistake_.empty()) return;
      taps *= axis.taps;
      columns *= axis.outputs;
      step = step * axis.taps + axis.block_step;
      a.Add(axis.taps, axis.filter_stride, /*may_be_negative=*/true);
      b.Add(axis.inputs, axis.input_stride);
      output.Add(axis.outputs, axis.output_stride);
    }
    Demand(step == MATRIX_BLOCK_DEPTH, "has a step that is no block");
    Demand(columns == c_.columns, "counts other columns than outputs");
    Demand(c_.depth % taps == 0, "ends inside of a channel");
    a.Add(c_.depth / taps, c_.a_depth_stride);
    b.Add(c_.depth / taps, c_.b_depth_stride);
  }

  const MatrixConstants c_;
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeMatrixChecker(const OperatorPlan& plan,
                                                   const Dispatch& dispatch) {
  return std::make_unique<MatrixChecker>(plan, dispatch);
}

}  // namespace opmill
