#include <algorithm>
#include <cstdint>
#include <memory>

#include "shaders/move_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

class MoveChecker final : public DispatchChecker {
 public:
  MoveChecker(const OperatorDesc& desc, const OperatorPlan& plan, const Dispatch& dispatch)
      : DispatchChecker(plan, dispatch), desc_(desc), c_(Constants<MoveConstants>()) {}

 private:
  // Offsets of a tensor, relative to its view.
  struct Range {
    int64_t low = 0;
    int64_t high = 0;
    void Add(int64_t first, int64_t last) {
      low += std::min(first, last);
      high += std::max(first, last);
    }
  };

  static int64_t Signed(uint32_t bits) { return static_cast<int32_t>(bits); }

  void CheckKernel() override {
    const bool marks = kernel_.entry == "Mark";
    const bool scatters = kernel_.entry == "Scatter";
    Demand(marks || scatters || kernel_.entry == "Move", "is of no known kernel");
    Demand(c_.rank >= 1 && c_.rank <= OPMILL_MAX_DIMS, "has too many dimensions, or none");
    Demand(c_.indexed_rank <= OPMILL_MAX_DIMS, "has too many indexed dimensions");
    if (!mistake_.empty()) return;
    uint64_t units = 1;
    for (uint32_t d = 0; d < c_.rank; ++d) units *= c_.dims[d].size;
    Demand(units == groups_.unit_count, "counts other units than its dimensions have");
    NeedGroups(CeilDiv(units, threads_));
    CheckIndices();
    Range input = {Signed(c_.input_base), Signed(c_.input_base)};
    Range output = {Signed(c_.output_base), Signed(c_.output_base)};
    for (uint32_t d = 0; d < c_.rank; ++d) {
      const MoveStep& dim = c_.dims[d];
      output.Add(0, int64_t{dim.size - 1} * dim.output_stride);
      const auto [first, last] = PositionsOf(d);
      input.Add(first * Signed(dim.input_stride), last * Signed(dim.input_stride));
    }
    Range& indexed = marks || scatters ? output : input;
    for (uint32_t i = 0; i < c_.indexed_rank; ++i) {
      const MoveIndexConstants& dim = c_.indexed[i];
      Demand(dim.count >= 1 && uint64_t{dim.first} + dim.count <= dim.size,
             "sees to positions that there are not");
      indexed.Add(int64_t{dim.first} * dim.stride,
                  (int64_t{dim.first} + dim.count - 1) * dim.stride);
    }
    if (marks || scatters) CheckMarks(output, marks);
    if (marks) return;
    const uint64_t width = Macro("ELEMENT_BYTES");
    Covers(input, 16 / width, read(0), "the input");
    Covers(output, 1, write(0), "the output");
    Demand(ViewElementBytes(write(0).format) == width, "writes elements of another size");
    const uint64_t bytes = ElementBytes(OutputsOf(desc_)[0].data_type);
    if (!scatters && c_.writes_invalid != 0) written_ = units * (width / bytes);
  }

  void Covers(const Range& range, uint64_t elements, const BufferView& view,
              absl::string_view what) {
    Demand(range.low >= 0, absl::StrCat("begins before ", what));
    Within(static_cast<uint64_t>(std::max<int64_t>(range.high, 0)) / elements, view, what);
  }

  void CheckMarks(const Range& output, bool marks) {
    const BufferView& view = write(marks ? 0 : 1);
    Covers({output.low + Signed(c_.mark_base), output.high + Signed(c_.mark_base)}, 1, view,
           "the marks");
    const auto clears = [&](const Fill& fill) {
      return fill.role == view.role && fill.offset_bytes <= view.offset_bytes &&
             fill.offset_bytes + fill.size_bytes >= view.offset_bytes + view.element_count * 4;
    };
    Demand(std::any_of(plan_.passes[0].fills.begin(), plan_.passes[0].fills.end(), clears),
           "has marks that do not start at zero");
  }

  void CheckIndices() {
    const bool has_indices = Macro("INDEXED") == 1;
    Demand(has_indices == (c_.indexed_rank > 0), "has an index tensor and nothing to index");
    if (!has_indices || !mistake_.empty()) return;
    Range range = {Signed(c_.index_base), Signed(c_.index_base)};
    for (uint32_t d = 0; d < c_.rank; ++d) {
      range.Add(0, int64_t{c_.dims[d].size - 1} * c_.dims[d].index_stride);
    }
    range.Add(0, int64_t{c_.indexed_rank - 1} * c_.index_step);
    Demand(c_.index_words == 1 || c_.index_words == 2, "has indices of another size");
    Covers(range, 4 / std::max(1u, c_.index_words), read(1), "the indices");
  }

  // The first and the last position of all steps.
  std::pair<int64_t, int64_t> PositionsOf(uint32_t d) {
    const MoveRuleConstants& rule = c_.rules[d];
    const int64_t last = int64_t{c_.dims[d].size} - 1;
    const int64_t start = Signed(rule.start);
    const int64_t size = rule.size;
    switch (rule.rule) {
      case MOVE_PLAIN:
      case MOVE_ROW:
      case MOVE_COLUMN:
      case MOVE_ORDER:
        return {0, last};
      case MOVE_REVERSED:
        return {0, 0};
      case MOVE_CONSTANT:
      case MOVE_EDGE:
        return {std::clamp<int64_t>(start, 0, size - 1),
                std::clamp<int64_t>(start + last, 0, size - 1)};
      case MOVE_WRAP:
        if (start % size + last < size) return {start % size, start % size + last};
        return {0, size - 1};
      case MOVE_MIRROR: {
        if (start / size != (start + last) / size) return {0, rule.last};
        const int64_t from = start % size;
        if (start / size % 2 == 0) return {from, from + last};
        return {rule.last - from - last, rule.last - from};
      }
      case MOVE_NEAREST:
        return {NearestOf(rule, start), NearestOf(rule, start + last)};
      default:
        Demand(false, "has a rule that there is not");
        return {0, 0};
    }
  }

  static int64_t NearestOf(const MoveRuleConstants& rule, int64_t step) {
    const uint64_t origin = uint64_t{rule.origin_high} << 32 | rule.origin_low;
    const uint64_t scale = uint64_t{rule.scale_high} << 32 | rule.scale_low;
    const auto at = static_cast<int64_t>(origin + static_cast<uint64_t>(step) * scale);
    return std::clamp<int64_t>(at >> 32, 0, int64_t{rule.size} - 1);
  }

  const OperatorDesc& desc_;
  const MoveConstants c_;
};

}  // namespace

std::unique_ptr<DispatchChecker> MakeMoveChecker(const OperatorDesc& validated,
                                                 const OperatorPlan& plan,
                                                 const Dispatch& dispatch) {
  return std::make_unique<MoveChecker>(validated, plan, dispatch);
}

}  // namespace opmill
