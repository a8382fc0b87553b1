// Gathers kernels, passes and scratch into a plan, and cuts views out of buffers.
#ifndef OPMILL_KERNELS_PLAN_PLAN_BUILDER_H_
#define OPMILL_KERNELS_PLAN_PLAN_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/base/rounding.h"
#include "kernels/plan/iteration_space.h"
#include "kernels/plan/plan.h"

namespace opmill {

inline constexpr uint64_t kVectorBytes = 16;

// A view and the offset inside it of the element that was asked for.
struct PlacedView {
  BufferView view;
  uint32_t base = 0;
};

class PlanBuilder {
 public:
  explicit PlanBuilder(const PlanOptions& options) : options_(options) {}

  const PlanOptions& options() const { return options_; }

  // The index of this permutation among the plan's kernels.
  uint32_t Kernel(KernelPermutation permutation);

  // Steps added from here on see what the earlier ones wrote.
  void NextPass();
  void Add(Dispatch dispatch);
  void Add(Fill fill) { pass().fills.push_back(fill); }

  // True once the plan has more dispatches than it may: what is added from here on is dropped, and
  // Finish refuses.
  bool full() const { return dispatches_ >= kMaxSlices; }

  // A dispatch of a kernel that writes `records` first, and is told how: as words where the device
  // is software (records.hlsli) and a view holds so many.
  Dispatch WritingRecords(KernelPermutation kernel, const BufferView& records);

  // Scratch for records, as its byte offset.
  uint64_t ReserveRecords(uint64_t count);
  // Scratch reserved after Mark is free again after Release(mark): for parts of the work that
  // follow one another.
  uint64_t Mark() const { return scratch_end_; }
  void Release(uint64_t mark) { scratch_end_ = mark; }

  // ResourceExhausted when the scratch is larger than the options allow, or the plan is full.
  absl::StatusOr<OperatorPlan> Finish(std::vector<uint64_t> input_bytes,
                                      std::vector<uint64_t> output_bytes);

 private:
  Pass& pass();

  PlanOptions options_;
  OperatorPlan plan_;
  uint64_t dispatches_ = 0;
  uint64_t scratch_end_ = 0;
  uint64_t scratch_high_ = 0;
};

// The unsigned type of an integer's size, for kernels that do not see signs: they serve both.
// Floats stay what they are.
DataType SignlessType(DataType type);

// Vectors of the input, or another buffer, that hold elements [base, base + span].
PlacedView ReadElements(DataType type, uint64_t base, uint64_t span,
                        BufferRole role = BufferRole::Input());
// Elements [base, base + span] of an output.
PlacedView WriteElements(BufferRole role, DataType type, uint64_t base, uint64_t span);
BufferView Records(uint64_t scratch_offset, uint64_t count);

// A view of records as one of smaller elements.
BufferView InFormat(BufferView view, ViewFormat format);

// The dimensions that a kernel is to walk, and how many there are.
void SetDims(absl::Span<const SpaceDim> from, Dim (&dims)[OPMILL_MAX_DIMS], uint32_t& rank);

// Deals units to groups that have so many lanes, or sets of lanes that share a unit, `lane_units`
// to each. The dispatch has its constants.
void DealUnits(Dispatch& dispatch, uint64_t units, uint64_t lane_units, uint64_t lanes);

// Deals `count` groups over the two dimensions that a dispatch has, counted from `first_group`.
// The dispatch has its constants.
void SetGroups(Dispatch& dispatch, uint64_t count, uint32_t first_group = 0);

// A zero for every byte of an output whose elements leave gaps.
void FillGaps(PlanBuilder& builder, BufferRole role, const TensorDesc& desc);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_PLAN_BUILDER_H_
