// Builds a plan from kernels, passes and scratch memory, and creates views of buffers.
#ifndef OPMILL_KERNELS_PLAN_PLAN_BUILDER_H_
#define OPMILL_KERNELS_PLAN_PLAN_BUILDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/plan/plan.h"

namespace opmill {

inline constexpr uint64_t kVectorBytes = 16;
inline constexpr uint64_t kMaxLanes = uint64_t{1} << 31;  // of a dispatch

// A view, and the offset within it of the requested element.
struct PlacedView {
  BufferView view;
  uint32_t base = 0;
};

class PlanBuilder {
 public:
  // The inputs start at these elements of their buffers; at 0 where there is none.
  explicit PlanBuilder(const PlanOptions& options, std::vector<uint64_t> first_elements = {})
      : options_(options), first_elements_(std::move(first_elements)) {}

  const PlanOptions& options() const { return options_; }
  uint64_t first_element(uint32_t input) const {
    return input < first_elements_.size() ? first_elements_[input] : 0;
  }

  // The index of this permutation in the plan's kernels; adds it if necessary.
  uint32_t Kernel(KernelPermutation permutation);

  // Starts a new pass: later steps see what earlier ones have written.
  void NextPass();
  void Add(Dispatch dispatch);
  void Add(Fill fill) { pass().fills.push_back(fill); }

  // True once the plan has reached its maximum number of dispatches. Later dispatches are dropped,
  // and Finish returns an error.
  bool full() const { return dispatches_ >= kMaxSlices; }

  // Reserves scratch for counters, which the first pass sets to zero, and words behind them.
  // Returns a view of both. No earlier pass may have used that scratch: not after Release.
  BufferView ReserveCounted(uint64_t counters, uint64_t words);
  // Reserves scratch for records, and returns its byte offset.
  uint64_t ReserveRecords(uint64_t count);
  // Release(mark) frees the scratch that was reserved after Mark, for parts of the work that follow
  // one another.
  uint64_t Mark() const { return scratch_end_; }
  void Release(uint64_t mark) { scratch_end_ = mark; }

  // Returns ResourceExhausted if the scratch exceeds the limit or the plan is full.
  absl::StatusOr<OperatorPlan> Finish(std::vector<uint64_t> input_bytes,
                                      std::vector<uint64_t> output_bytes);

 private:
  Pass& pass();
  uint64_t Reserve(uint64_t size_bytes);

  PlanOptions options_;
  std::vector<uint64_t> first_elements_;
  OperatorPlan plan_;
  uint64_t dispatches_ = 0;
  uint64_t scratch_end_ = 0;
  uint64_t scratch_high_ = 0;
};

// The unsigned type of the same size as an integer type, for kernels that serve both signs. Float
// types are returned unchanged.
DataType SignlessType(DataType type);

// A view of the vectors that contain elements [base, base + span] of a buffer.
PlacedView ReadElements(DataType type, uint64_t base, uint64_t span,
                        BufferRole role = BufferRole::Input());
// A view of elements [base, base + span] of an output.
PlacedView WriteElements(BufferRole role, DataType type, uint64_t base, uint64_t span);
BufferView Records(uint64_t scratch_offset, uint64_t count);

// The same view with a format of smaller elements.
BufferView InFormat(BufferView view, ViewFormat format);

// As kernels take it.
Dim ToDim(const SpaceDim& dim);
// Sets the dimensions that a kernel walks, and their number.
void SetDims(absl::Span<const SpaceDim> from, Dim (&dims)[OPMILL_MAX_DIMS], uint32_t& rank);

// Deals units to groups of `lanes` lanes, one to each. The dispatch must have its constants.
void DealUnits(Dispatch& dispatch, uint64_t units, uint64_t lanes);

// Deals `count` groups over the two dimensions that a dispatch has, counted from `first_group`.
// The dispatch must have its constants.
void SetGroups(Dispatch& dispatch, uint64_t count, uint32_t first_group = 0);

// Fills an output with zeros if its elements leave gaps.
void FillGaps(PlanBuilder& builder, BufferRole role, const TensorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_PLAN_BUILDER_H_
