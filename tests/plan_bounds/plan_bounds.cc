#include "tests/plan_bounds/plan_bounds.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "shaders/hardmax_constants.h"
#include "shaders/reduction_constants.h"
#include "tests/plan_bounds/dispatch_checker.h"

namespace opmill {
namespace {

class ReductionChecker final : public DispatchChecker {
 public:
  ReductionChecker(const OperatorPlan& plan, const Dispatch& dispatch)
      : DispatchChecker(plan, dispatch), c_(Constants<ReductionConstants>()) {}

 private:
  void CheckKernel() override {
    Demand(kernel_.entry == "Reduce", "is of no known kernel");
    Demand(groups_.zero == 0, "has a zero that is none");
    NeedSharing(c_);
    switch (Macro("LOAD")) {
      case LOAD_ROW_ALIGNED:
      case LOAD_ROW_SHIFTED:
        return Rows();
      case LOAD_SCALAR:
        return Scalars();
      case LOAD_RECORD:
        return Combine();
      case LOAD_COLUMN_ALIGNED:
      case LOAD_COLUMN_SHIFTED:
        return Columns();
      default:
        Demand(false, "loads in no known way");
    }
  }

  absl::Span<const Dim> kept() { return DimsOf(c_.kept, c_.kept_rank); }
  absl::Span<const Dim> reduced() { return DimsOf(c_.reduced, c_.reduced_rank); }

  // What every first element of a walk is a multiple of, within a vector.
  uint64_t Alignment() { return AlignmentOf(AlignmentOf(c_.input_base, kept()), reduced()); }

  void StoresResults(uint64_t results, uint64_t output_span) {
    if (Macro("RESULT") != RESULT_RECORD) {
      Within(c_.output_base + output_span, write(0), "the output");
      written_ = results;
    } else {
      Within(c_.record_base + results - 1, write(0), "the records");
    }
    CheckJoin();
  }

  // Groups that share results count themselves in counters that start at zero, and leave the parts
  // of each split behind them.
  void CheckJoin() {
    Demand((c_.splits > 1) == (Macro("JOINS") == 1), "shares results without joining them");
    if (c_.splits == 1) return;
    const bool is_column = Macro("LOAD") >= LOAD_COLUMN_ALIGNED;
    const uint64_t words = (is_column ? vector_ : 1) * MOST_PART_WORDS;
    Within(c_.partials_base + uint64_t{c_.splits} * words * groups_.unit_count - 1, write(1),
           "the partials");
    Demand(c_.tiles <= c_.partials_base, "counts tiles among partials");
    Demand(std::any_of(plan_.passes[0].fills.begin(), plan_.passes[0].fills.end(),
                       [&](const Fill& fill) {
                         return fill.role == write(1).role &&
                                fill.offset_bytes == write(1).offset_bytes &&
                                fill.size_bytes == uint64_t{c_.partials_base} * 4;
                       }),
           "has counters that do not start at zero");
  }

  // Without a division there is one dimension, or, in rows, none but the run.
  void CheckWalk() {
    const bool is_row = Macro("LOAD") <= LOAD_ROW_SHIFTED;
    Demand(c_.reduced_rank <= (is_row ? 0 : 1) || Macro("DIMS") == 1, "does not divide");
    Demand(c_.reduced_rank > 0 || c_.reduced[0].input_stride == 0,
           "steps where nothing is reduced");
    Demand(kernel_.shader != "arg_reduce" || vector_ <= 4 ||
               CeilDiv(c_.item_count, uint64_t{c_.splits} << c_.lane_bits) <= MOST_LANE_ITEMS,
           "has more turns than its kernel counts");
  }

  uint64_t Farthest() {
    return c_.input_base + Span(kept(), &Dim::input_stride) + Span(reduced(), &Dim::input_stride);
  }

  void CheckLastVector() {
    Demand(uint64_t{c_.last_vector} + 1 == read(0).element_count, "has another last vector");
  }

  void Rows() {
    CheckWalk();
    NeedPositions(kept(), groups_.unit_count, "results");
    Demand(c_.run_length > 0 && c_.run_vectors > 0, "has empty runs");
    if (!mistake_.empty()) return;
    NeedPositions(reduced(), c_.item_count / c_.run_vectors, "runs");
    Demand(c_.item_count % c_.run_vectors == 0, "ends inside a run");
    Demand(c_.reduced_count == Product(reduced()) * c_.run_length, "has another reduced_count");
    ReadsElement(Farthest() + c_.run_length - 1);
    if (Macro("LOAD") == LOAD_ROW_ALIGNED) {
      Demand(Alignment() == vector_ && c_.run_length % vector_ == 0, "is aligned and is not");
      Demand(c_.run_vectors * vector_ == c_.run_length, "has other vectors than its run");
    } else {
      Demand(c_.run_vectors * vector_ >= c_.run_length + vector_ - Alignment(),
             "leaves out elements");
      CheckLastVector();
    }
    StoresResults(groups_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void Scalars() {
    CheckWalk();
    NeedPositions(kept(), groups_.unit_count, "results");
    NeedPositions(reduced(), c_.item_count, "items");
    ReadsElement(Farthest());
    StoresResults(groups_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void Combine() {
    Demand(Macro("RESULT") != RESULT_RECORD, "combines records into records");
    NeedPositions(kept(), groups_.unit_count, "results");
    Within(groups_.unit_count - 1 + uint64_t{c_.item_count - 1} * c_.record_stride, read(0),
           "the records");
    StoresResults(groups_.unit_count, Span(kept(), &Dim::output_stride));
  }

  void Columns() {
    CheckWalk();
    Demand(c_.column_units == CeilDiv(c_.columns, vector_), "has other units than columns");
    if (!mistake_.empty() || c_.column_units == 0) return;
    const uint64_t outer = groups_.unit_count / c_.column_units;
    Demand(outer * c_.column_units == groups_.unit_count, "ends inside a row");
    NeedPositions(kept(), outer, "rows of results");
    NeedPositions(reduced(), c_.item_count, "items");
    ReadsElement(Farthest() + c_.columns - 1);
    if (Macro("LOAD") == LOAD_COLUMN_ALIGNED) {
      Demand(Alignment() == vector_, "is aligned and is not");
    } else {
      CheckLastVector();
    }
    StoresResults(outer * c_.columns, Span(kept(), &Dim::output_stride) +
                                          uint64_t{c_.columns - 1} * c_.column_output_stride);
  }

  const ReductionConstants c_;
};

class HardmaxChecker final : public DispatchChecker {
 public:
  using DispatchChecker::DispatchChecker;

 private:
  void CheckKernel() override {
    Demand(kernel_.entry == "WriteOnes", "is of no known kernel");
    const auto c = Constants<HardmaxConstants>();
    const absl::Span<const Dim> kept = DimsOf(c.kept, c.kept_rank);
    const absl::Span<const Dim> reduced = DimsOf(c.reduced, c.reduced_rank);
    NeedSharing(c);
    const uint64_t store = Macro("STORE");
    const uint64_t unit_results = store == STORE_OF_COLUMNS ? vector_ : 1;
    const uint64_t item_elements = store == STORE_OF_ROW ? vector_ : 1;
    const uint64_t results = groups_.unit_count * unit_results;
    NeedPositions(kept, results, "results");
    NeedPositions(reduced, c.item_count * item_elements, "positions");
    Demand(c.record_count > 0, "reads no records");
    Within(results - 1 + uint64_t{c.record_count - 1} * c.record_stride, read(0), "the records");
    const uint64_t last =
        c.output_base + Span(kept, &Dim::output_stride) + Span(reduced, &Dim::output_stride);
    Within(store == STORE_ELEMENT ? last : last / vector_, write(0), "the output");
    if (store != STORE_ELEMENT) CheckVectors(c.output_base, kept, reduced, store);
    written_ = results * c.item_count * item_elements;
  }

  // Each vector that is stored holds neighbors of one dimension, and nothing else.
  void CheckVectors(uint64_t base, absl::Span<const Dim> kept, absl::Span<const Dim> reduced,
                    uint64_t store) {
    const absl::Span<const Dim> walked = store == STORE_OF_ROW ? reduced : kept;
    Demand(!walked.empty() && walked.back().output_stride == 1 && walked.back().size % vector_ == 0,
           "stores vectors that its output has not");
    uint64_t alignment = base % vector_;
    for (const absl::Span<const Dim> dims : {kept, reduced}) {
      for (const Dim& dim : dims) {
        if (&dim != &walked.back()) alignment += dim.output_stride % vector_;
      }
    }
    Demand(alignment == 0, "stores vectors that start inside of others");
  }
};

std::unique_ptr<DispatchChecker> MakeChecker(const OperatorDesc& validated,
                                             const OperatorPlan& plan, const Dispatch& dispatch) {
  const std::string& shader = plan.kernels[dispatch.kernel].shader;
  if (shader == "cumulative_summation") return MakeCumulativeSummationChecker(plan, dispatch);
  if (shader == "element_wise") return MakeElementwiseChecker(validated, plan, dispatch);
  if (shader == "pooling") return MakePoolingChecker(plan, dispatch);
  if (shader == "hardmax") return std::make_unique<HardmaxChecker>(plan, dispatch);
  if (shader == "matrix") return MakeMatrixChecker(plan, dispatch);
  if (shader == "move") return MakeMoveChecker(validated, plan, dispatch);
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
  const uint64_t limit = RoundUp(bytes, writes ? uint64_t{ViewElementBytes(view.format)} : 16);
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
  if (desc.schema == &kHardmaxSchema) return elements;
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
