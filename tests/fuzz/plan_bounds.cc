#include "tests/fuzz/plan_bounds.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "shaders/hardmax_constants.h"
#include "shaders/reduction_constants.h"
#include "tests/fuzz/dispatch_checker.h"

namespace opmill {
namespace {

constexpr uint32_t kMostTileRowsAtATime = 32;  // more would cost a sum too many bits
constexpr uint32_t kMostTileRows = 0xFFFE;

class ReductionChecker final : public DispatchChecker {
 public:
  ReductionChecker(const OperatorPlan& plan, const Dispatch& dispatch)
      : DispatchChecker(plan, dispatch), c_(Constants<ReductionConstants>()) {}

 private:
  void CheckKernel() override {
    if (kernel_.entry == "ReduceRows") {
      Macro("LOAD") == LOAD_RECORD ? Combine() : ReduceRows();
    } else if (kernel_.entry == "ReduceColumns" || kernel_.entry == "ReduceTiles") {
      ReduceColumns();
    } else {
      Demand(false, "is of no known kernel");
    }
  }

  absl::Span<const Dim> kept() { return DimsOf(c_.kept, c_.kept_rank); }
  absl::Span<const Dim> reduced() { return DimsOf(c_.reduced, c_.reduced_rank); }

  // What every first element of a walk is a multiple of, within a vector.
  uint64_t Alignment() { return AlignmentOf(AlignmentOf(c_.input_base, kept()), reduced()); }

  void Splits() {
    Demand(uint64_t{c_.splits} * c_.split_items >= c_.item_count &&
               uint64_t{c_.splits - 1} * c_.split_items < c_.item_count,
           "splits its items into others than it has");
  }

  void StoresResults(uint64_t results, uint64_t output_span) {
    if (Macro("RESULT") == 0) {
      Demand(c_.splits == 1, "writes an output of which it knows a part");
      Within(c_.output_base + output_span, write(0), "the output");
      written_ = results;
    } else {
      Within(c_.record_base + (results - 1) * c_.record_stride +
                 uint64_t{c_.splits - 1} * c_.split_stride,
             write(0), "the records");
    }
  }

  void CheckLanes() {
    const uint64_t lanes = uint64_t{1} << c_.lane_bits;
    Demand(lanes <= threads_, "shares a result among more lanes than a group has");
    Demand(Macro("SHARE") == (lanes > 1 ? 1 : 0), "shares without SHARE");
  }

  // A kernel with a fixed number of items has no loop over them.
  void CheckItems(bool walks_runs) {
    if (Macro("ITEMS") == 0) return;
    Demand(Macro("ITEMS") == c_.item_count && c_.split_items == c_.item_count,
           "knows another number of items");
    Demand(Macro("ITEMS") <= MOST_ITEMS, "knows more items than kernels join");
    Demand(c_.splits == 1 && c_.lane_bits == 0, "shares its items");
    Demand(kernel_.entry != "ReduceTiles", "walks tiles of few items");
    Demand(c_.reduced_rank <= (walks_runs ? 0 : 1), "divides for an item");
  }

  // A walk over runs may have no other dimension; other walks have at least one, possibly of size
  // 1.
  void CheckDims(bool walks_runs) {
    const uint64_t dims = std::max<uint64_t>(c_.reduced_rank, walks_runs ? 0 : 1);
    Demand(Macro("DIMS") == std::min<uint64_t>(dims, 2), "has other dimensions");
    Demand(c_.reduced_rank > 0 || c_.reduced[0].input_stride == 0,
           "steps where nothing is reduced");
    Demand(c_.opaque_zero == 0, "has a zero that is none");
  }

  void ReduceRows() {
    const uint64_t load = Macro("LOAD");
    CheckLanes();
    Splits();
    NeedPositions(kept(), groups_.unit_count, "results");
    CheckDims(load != LOAD_SCALAR);
    CheckItems(load != LOAD_SCALAR);
    const uint64_t run_length = load == LOAD_SCALAR ? 1 : c_.run_length;
    const uint64_t run_vectors = load == LOAD_SCALAR ? 1 : c_.run_vectors;
    Demand(run_length > 0 && run_vectors > 0, "has empty runs");
    if (!mistake_.empty()) return;
    NeedPositions(reduced(), c_.item_count / run_vectors, "runs");
    Demand(c_.item_count % run_vectors == 0, "ends inside a run");
    Demand(c_.reduced_count == Product(reduced()) * run_length, "has another reduced_count");
    const uint64_t farthest =
        c_.input_base + Span(kept(), &Dim::input_stride) + Span(reduced(), &Dim::input_stride);
    ReadsElement(farthest + run_length - 1);
    if (load == LOAD_ALIGNED) {
      Demand(Alignment() == vector_ && run_length % vector_ == 0, "is aligned and is not");
      Demand(run_vectors * vector_ == run_length, "has other vectors than its run");
    } else if (load == LOAD_SHIFTED) {
      Demand(run_vectors * vector_ >= run_length + vector_ - Alignment(), "leaves out elements");
      Demand(uint64_t{c_.last_vector} + 1 == read(0).element_count, "has another last vector");
    }
    const uint64_t lanes = uint64_t{1} << c_.lane_bits;
    Demand(c_.lane_items == 0 || c_.lane_items * lanes >= c_.split_items, "leaves out steps");
    Demand(c_.item_count + c_.lane_items * lanes <= kMost, "counts steps past 32 bits");
    NeedGroups(CeilDiv(groups_.unit_count, GroupUnits(c_.lane_bits, c_.splits)) * c_.splits);
    StoresResults(groups_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void Combine() {
    Demand(Macro("RESULT") == 0, "combines records into records");
    CheckLanes();
    Splits();
    NeedPositions(kept(), groups_.unit_count, "results");
    Within(uint64_t{groups_.unit_count - 1} * c_.read_stride +
               uint64_t{c_.item_count - 1} * c_.read_item_stride,
           read(0), "the records");
    NeedGroups(CeilDiv(groups_.unit_count, GroupUnits(c_.lane_bits, c_.splits)) * c_.splits);
    StoresResults(groups_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void ReduceColumns() {
    const uint64_t load = Macro("LOAD");
    const uint64_t slots = load == LOAD_SCALAR ? 1 : vector_;
    CheckLanes();
    Splits();
    Demand(c_.column_units == CeilDiv(c_.columns, slots), "has other units than columns");
    if (!mistake_.empty() || c_.column_units == 0) return;
    const uint64_t outer = groups_.unit_count / c_.column_units;
    Demand(outer * c_.column_units == groups_.unit_count, "ends inside a row");
    NeedPositions(kept(), outer, "rows of results");
    NeedPositions(reduced(), c_.item_count, "items");
    CheckDims(false);
    CheckItems(false);
    Demand(Macro("WIDTH") == (load == LOAD_SCALAR || wide_ ? 1 : 4),
           "folds another number of columns");
    const uint64_t farthest =
        c_.input_base + Span(kept(), &Dim::input_stride) + Span(reduced(), &Dim::input_stride);
    if (load == LOAD_SCALAR) {
      ReadsElement(farthest + uint64_t{c_.columns - 1} * c_.column_input_stride);
    } else {
      Demand(c_.column_input_stride == 1, "reads columns that are no neighbours");
      ReadsElement(farthest + c_.columns - 1);
      if (load == LOAD_ALIGNED) Demand(Alignment() == vector_, "is aligned and is not");
      if (load == LOAD_SHIFTED) {
        Demand(uint64_t{c_.last_vector} + 1 == read(0).element_count, "has another last vector");
      }
    }
    NeedGroups(ColumnGroups(outer) * c_.splits);
    StoresResults(outer * c_.columns, Span(kept(), &Dim::output_stride) +
                                          uint64_t{c_.columns - 1} * c_.column_output_stride);
  }

  // Of one split.
  uint64_t ColumnGroups(uint64_t outer) {
    if (kernel_.entry == "ReduceColumns")
      return CeilDiv(groups_.unit_count, GroupUnits(c_.lane_bits, c_.splits));
    Demand(groups_.lane_units >= 1 && groups_.lane_units <= TILE_VECTORS,
           "has tiles of another size than its kernel");
    Demand(c_.tile_rows >= 1 && c_.tile_rows <= kMostTileRowsAtATime,
           "walks another number of rows at a time");
    Demand(c_.lane_bits == 0, "shares tiles");
    Demand(c_.split_items <= kMostTileRows, "has more rows in a tile than its kernel counts");
    return outer * CeilDiv(c_.column_units, uint64_t{std::max(1u, groups_.lane_units)} * threads_);
  }

  const ReductionConstants c_;
};

class HardmaxChecker final : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 private:
  void CheckKernel() override {
    Demand(kernel_.entry == "ScatterOnes", "is of no known kernel");
    const auto c = Constants<HardmaxConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    const absl::Span<const Dim> reduced = DimsOf(c.reduced, c.reduced_rank);
    NeedPositions(kept, groups_.unit_count, "results");
    NeedPositions(reduced, c.position_count, "positions");
    Within((c.positions_base + Span(kept, &Dim::index_stride)) / 4, read(0), "the positions");
    Within(c.output_base + Span(kept, &Dim::output_stride) + Span(reduced, &Dim::output_stride),
           write(0), "the output");
    NeedGroups(CeilDiv(groups_.unit_count, GroupUnits()));
    written_ = uint64_t{groups_.unit_count} * c.position_count;
  }
};

std::unique_ptr<DispatchChecker> MakeChecker(const OperatorDesc& validated,
                                             const OperatorPlan& plan, const Dispatch& dispatch) {
  const std::string& shader = plan.kernels[dispatch.kernel].shader;
  if (shader == "cumulative_summation") return MakeCumulativeSummationChecker(plan, dispatch);
  if (shader == "element_wise_add") return MakeElementwiseChecker(plan, dispatch);
  if (shader == "hardmax") return std::make_unique<HardmaxChecker>(plan, dispatch);
  if (absl::StartsWith(shader, "top_k")) {
    return MakeTopKChecker(plan, dispatch, static_cast<uint32_t>(validated.number("k")));
  }
  return std::make_unique<ReductionChecker>(plan, dispatch);
}

std::string FindViewMistake(const OperatorPlan& plan, const PlanOptions& options,
                            const BufferView& view, bool writes) {
  if (view.element_count == 0) return "";
  const uint64_t end = view.offset_bytes + view.element_count * ViewElementBytes(view.format);
  // Reads may extend beyond the last element, but not beyond its vector.
  const uint64_t bytes = BytesOf(plan, view.role);
  const uint64_t limit = writes && view.format != ViewFormat::kVector ? bytes : RoundUp(bytes, 16);
  if (view.offset_bytes % 16 != 0) return "a view starts inside a vector";
  if (view.element_count > options.max_view_elements) return "a view has too many elements";
  if (end > limit) {
    return absl::StrCat("a view of ", ToString(view.role), " ends at byte ", end, " of ", bytes);
  }
  if (writes && view.role.kind == BufferRole::Kind::kInput) return "a view writes the input";
  return "";
}

// The limit of checked result positions, over all dispatches.
uint64_t WorkOf(const OperatorDesc& desc) {
  const uint64_t elements = ElementCount(desc.inputs[0]);
  if (desc.schema == &kHardmaxSchema) {
    uint64_t of_result = 1;
    for (const uint32_t axis : desc.list("axes")) of_result *= desc.inputs[0].sizes[axis];
    return elements + elements / of_result;  // plus the positions found
  }
  if (desc.schema == &kTopKSchema) return elements + ElementCount(OutputsOf(desc)[0]);
  return ElementCount(OutputsOf(desc)[0]);
}

}  // namespace

std::string FindPlanMistake(const OperatorDesc& validated, const PlanOptions& options,
                            const OperatorPlan& plan) {
  if (plan.input_bytes.size() != validated.inputs.size()) return "another count of inputs";
  for (size_t i = 0; i < plan.input_bytes.size(); ++i) {
    if (plan.input_bytes[i] != RequiredBytes(validated.inputs[i])) return "another input_bytes";
  }
  const std::vector<TensorDesc> outputs = OutputsOf(validated);
  if (plan.output_bytes.size() != outputs.size()) return "another count of outputs";
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (plan.output_bytes[i] != RequiredBytes(outputs[i])) return "another output_bytes";
  }
  if (plan.scratch_bytes > options.max_scratch_bytes) return "too much scratch";
  uint64_t written = 0;
  for (size_t p = 0; p < plan.passes.size(); ++p) {
    for (const Fill& fill : plan.passes[p].fills) {
      if (fill.offset_bytes % 4 != 0 || fill.size_bytes % 4 != 0 ||
          fill.offset_bytes + fill.size_bytes > BytesOf(plan, fill.role)) {
        return absl::StrCat("pass ", p, " fills past the end of a buffer");
      }
    }
    for (size_t d = 0; d < plan.passes[p].dispatches.size(); ++d) {
      const Dispatch& dispatch = plan.passes[p].dispatches[d];
      if (dispatch.kernel >= plan.kernels.size()) return "a kernel that the plan does not have";
      std::string mistake;
      for (const BufferView& view : dispatch.reads) {
        if (mistake.empty()) mistake = FindViewMistake(plan, options, view, false);
      }
      for (const BufferView& view : dispatch.writes) {
        if (mistake.empty()) mistake = FindViewMistake(plan, options, view, true);
      }
      const std::unique_ptr<DispatchChecker> checker = MakeChecker(validated, plan, dispatch);
      if (mistake.empty()) mistake = checker->Run();
      if (!mistake.empty()) return absl::StrCat("pass ", p, " dispatch ", d, ": ", mistake);
      written += checker->written();
    }
  }
  if (written == WorkOf(validated)) return "";
  return absl::StrCat("the dispatches see to ", written, " of ", WorkOf(validated), " results");
}

}  // namespace opmill
