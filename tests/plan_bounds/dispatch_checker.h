// The base of the checkers for the dispatches of each kernel.
#ifndef OPMILL_TESTS_PLAN_BOUNDS_DISPATCH_CHECKER_H_
#define OPMILL_TESTS_PLAN_BOUNDS_DISPATCH_CHECKER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/plan.h"

namespace opmill {

// Checks one dispatch, and keeps the first mistake.
class DispatchChecker {
 public:
  DispatchChecker(const OperatorPlan& plan, const Dispatch& dispatch)
      : plan_(plan),
        kernel_(plan.kernels[dispatch.kernel]),
        dispatch_(dispatch),
        groups_(dispatch.constants.groups()) {
    const auto type = static_cast<DataType>(Macro("DATA_TYPE", false));
    threads_ = Macro("THREADS");
    vector_ = 16 / std::max(1u, ElementBytes(type));
    wide_ = vector_ == 2;
  }

  virtual ~DispatchChecker() = default;

  // Returns the first mistake, or "".
  std::string Run() {
    Demand(dispatch_.groups[0] >= 1 && dispatch_.groups[0] <= 65535 && dispatch_.groups[1] >= 1 &&
               dispatch_.groups[1] <= 65535,
           "has groups past Direct3D's limit");
    Demand(groups_.group_columns == dispatch_.groups[0], "has other group_columns than groups");
    Demand(groups_.first_group == 0, "begins inside of its groups");
    Demand(groups() * threads_ <= kMost, "counts lanes past 32 bits");
    CheckKernel();
    return mistake_;
  }

  // The number of elements of the first output that it writes, or of parts of a result that it
  // reads.
  uint64_t written() const { return written_; }

 protected:
  static constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();

  virtual void CheckKernel() = 0;

  void Demand(bool holds, absl::string_view what) {
    if (!holds && mistake_.empty()) mistake_ = absl::StrCat(kernel_.entry, " ", what);
  }

  void Within(uint64_t index, const BufferView& view, absl::string_view what) {
    if (index < view.element_count && index <= kMost) return;
    Demand(false,
           absl::StrCat("goes to ", index, " of ", what, ", which has ", view.element_count));
  }

  uint64_t Macro(absl::string_view name, bool required = true) {
    for (const ShaderMacro& macro : kernel_.macros) {
      if (macro.name == name) return macro.value;
    }
    Demand(!required, absl::StrCat("lacks the macro ", name));
    return 0;
  }

  uint64_t groups() const { return uint64_t{dispatch_.groups[0]} * dispatch_.groups[1]; }
  const BufferView& read(size_t slot) const { return dispatch_.reads[slot]; }
  const BufferView& write(size_t slot) const { return dispatch_.writes[slot]; }
  void NeedGroups(uint64_t count) {
    Demand(groups() >= count, absl::StrCat("has ", groups(), " groups of ", count));
  }

  // The constants that its kernel reads; zeros, and a mistake, where it has others.
  template <typename T>
  T Constants() {
    Demand(dispatch_.constants.Holds<T>(), "has the constants of another kernel");
    return dispatch_.constants.As<T>();
  }

  absl::Span<const Dim> DimsOf(const Dim (&dims)[OPMILL_MAX_DIMS], uint32_t rank) {
    Demand(rank <= OPMILL_MAX_DIMS, "has too many dimensions");
    return absl::MakeConstSpan(dims).first(std::min<uint32_t>(rank, OPMILL_MAX_DIMS));
  }

  static uint64_t Product(absl::Span<const Dim> dims) {
    uint64_t product = 1;
    for (const Dim& dim : dims) product *= dim.size;
    return product;
  }

  // The largest offset that the dimensions reach.
  static uint64_t Span(absl::Span<const Dim> dims, uint Dim::*stride) {
    uint64_t span = 0;
    for (const Dim& dim : dims) span += uint64_t{dim.size - 1} * dim.*stride;
    return span;
  }

  // Positions are numbered in row-major order. A position beyond the dimensions would produce too
  // large an offset along the outermost one.
  void NeedPositions(absl::Span<const Dim> dims, uint64_t count, absl::string_view what) {
    if (Product(dims) == count) return;
    Demand(false,
           absl::StrCat("walks ", count, " ", what, ", and its dimensions have ", Product(dims)));
  }

  // Checks that lanes and groups divide units and items as task.hlsli does, and leave out none.
  template <typename T>
  void NeedSharing(const T& c) {
    const uint64_t lanes = uint64_t{1} << c.lane_bits;
    Demand(lanes <= threads_, "shares a unit among more lanes than a group has");
    Demand(c.part_shift == 0 || lanes << c.part_shift == threads_, "leaves lanes of a group idle");
    Demand(c.splits >= 1 && c.splits <= c.item_count, "has splits without items");
    if (!mistake_.empty()) return;
    Demand(c.tiles == CeilDiv(groups_.unit_count, threads_ / lanes), "has other tiles than units");
    Demand(c.item_count + 4 * c.splits * lanes <= kMost, "counts items past 32 bits");
    NeedGroups(uint64_t{c.tiles} * c.splits);
  }

  // The largest power of two, up to a vector, that divides offset and strides of dimensions.
  uint64_t AlignmentOf(uint64_t base, absl::Span<const Dim> dims) const {
    uint64_t alignment = std::gcd(base, vector_);
    for (const Dim& dim : dims) {
      if (dim.size > 1) alignment = std::gcd(alignment, uint64_t{dim.input_stride});
    }
    return alignment;
  }

  // Checks that an element of the input is within the view's vectors.
  void ReadsElement(uint64_t element) {
    Demand(element <= kMost, "reads elements past 32 bits");
    Within(element / vector_, read(0), "the input's vectors");
  }

  const OperatorPlan& plan_;
  const KernelPermutation& kernel_;
  const Dispatch& dispatch_;
  const GroupConstants groups_;
  uint64_t threads_ = 0;
  uint64_t vector_ = 0;
  bool wide_ = false;
  uint64_t written_ = 0;
  std::string mistake_;
};

// The checkers for the kernels of each operator family.
std::unique_ptr<DispatchChecker> MakeCumulativeSummationChecker(const OperatorPlan& plan,
                                                                const Dispatch& dispatch);
std::unique_ptr<DispatchChecker> MakeElementwiseChecker(const OperatorDesc& validated,
                                                        const OperatorPlan& plan,
                                                        const Dispatch& dispatch);
std::unique_ptr<DispatchChecker> MakePoolingChecker(const OperatorPlan& plan,
                                                    const Dispatch& dispatch);
std::unique_ptr<DispatchChecker> MakeMatrixChecker(const OperatorPlan& plan,
                                                   const Dispatch& dispatch);
std::unique_ptr<DispatchChecker> MakeMoveChecker(const OperatorDesc& validated,
                                                 const OperatorPlan& plan,
                                                 const Dispatch& dispatch);
std::unique_ptr<DispatchChecker> MakeTopKChecker(const OperatorPlan& plan, const Dispatch& dispatch,
                                                 uint32_t k);

}  // namespace opmill

#endif  // OPMILL_TESTS_PLAN_BOUNDS_DISPATCH_CHECKER_H_
