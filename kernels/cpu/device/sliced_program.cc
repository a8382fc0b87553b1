#include "kernels/cpu/device/sliced_program.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/per_thread.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/device/cpu_plan.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/lower.h"

namespace opmill {
namespace {

// Of a slice, in elements of the output: with its intermediates it fits into the second cache.
constexpr uint64_t kSliceElements = uint64_t{1} << 14;
// Several slices let each thread read what it has written in the step before.
constexpr uint64_t kLeastElements = uint64_t{1} << 12;
constexpr uint64_t kWantedSlices = 4;

// The memory of a thread for the intermediates of a slice.
struct alignas(64) Arena {
  std::byte bytes[size_t{256} << 10];
};
constinit PerThread<Arena> arenas;

// Dimensions before `dim` have size 1 in a slice, `dim` has `count`, the others are whole.
struct SliceShape {
  uint32_t dim = 0;
  uint32_t count = 1;
};

uint32_t FirstAxis(const OperatorDesc& desc) {
  const std::vector<uint32_t> axes = AxesOf(desc);
  return axes.empty() ? 0 : *std::min_element(axes.begin(), axes.end());
}

SliceShape ShapeOf(const OperatorDesc& desc) {
  const std::vector<uint32_t>& sizes = desc.outputs[0]->sizes;
  uint64_t inner = ElementCount(*desc.outputs[0]);
  const uint32_t last = FirstAxis(desc) - 1;
  const uint64_t elements = std::clamp(inner / kWantedSlices, kLeastElements, kSliceElements);
  for (uint32_t d = 0;; ++d) {
    inner /= sizes[d];
    const uint64_t most = std::max<uint64_t>(1, elements / inner);
    if (d == last || most > 1) {
      return {.dim = d, .count = static_cast<uint32_t>(std::min<uint64_t>(most, sizes[d]))};
    }
  }
}

OperatorDesc DescOf(const OperatorDesc& desc, const SliceShape& shape) {
  OperatorDesc slice = desc;
  const auto cut = [&](TensorDesc& tensor) {
    tensor.strides = EffectiveStrides(tensor);
    std::fill_n(tensor.sizes.begin(), shape.dim, 1u);
    uint32_t& size = tensor.sizes[shape.dim];
    size = std::min(size, shape.count);
  };
  for (TensorDesc& input : slice.inputs) cut(input);
  cut(*slice.outputs[0]);
  return slice;
}

// The bytes that a step along a dimension moves; 0 if the tensor is broadcast along it.
uint64_t StepBytes(const TensorDesc& tensor, uint32_t dim) {
  if (tensor.sizes[dim] == 1) return 0;
  return uint64_t{EffectiveStrides(tensor)[dim]} * ElementBytes(tensor.data_type);
}

// A task is a slice.
class SlicedProgram : public CpuProgram {
 public:
  explicit SlicedProgram(const OperatorDesc& desc)
      : desc_(desc), shape_(ShapeOf(desc)), whole_(PlanOf(shape_)) {
    const std::vector<uint32_t>& sizes = desc_.outputs[0]->sizes;
    slices_ = CeilDiv(sizes[shape_.dim], shape_.count);
    if (const uint32_t rest = sizes[shape_.dim] % shape_.count; rest != 0) {
      rest_ = PlanOf({shape_.dim, rest});
    }
    uint64_t outer = 1;
    for (uint32_t d = 0; d < shape_.dim; ++d) outer *= sizes[d];
    phases_ = {outer * slices_};
    cost_bytes_ = phases_[0] * CostBytes(whole_);
    task_bytes_ = ScratchBytes(whole_, 1);
    rounding_ = RoundingOf(whole_);
    if (rest_.has_value() && RoundingOf(*rest_) != rounding_) rounding_ = phases_[0];
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    RunBuffers slice;
    for (size_t i = 0; i < desc_.inputs.size(); ++i) {
      slice.inputs[i] = buffers.inputs[i] + OffsetOf(desc_.inputs[i], task);
    }
    slice.outputs[0] = buffers.outputs[0] + OffsetOf(*desc_.outputs[0], task);
    const bool is_last = task % slices_ + 1 == slices_;
    const CpuPlan& plan = is_last && rest_.has_value() ? *rest_ : whole_;
    PerThread<Arena>::Use arena(arenas);
    std::vector<Arena> large;
    if (plan.arena_bytes > sizeof(Arena)) {
      large = std::vector<Arena>(CeilDiv(plan.arena_bytes, uint64_t{sizeof(Arena)}));
    }
    slice.scratch = large.empty() ? arena->bytes : large[0].bytes;
    RunPlan(plan, slice);
  }

 private:
  CpuPlan PlanOf(const SliceShape& shape) const {
    return MakeCpuPlan(Lower(ProgramOf(DescOf(desc_, shape))));
  }

  uint64_t OffsetOf(const TensorDesc& tensor, uint64_t task) const {
    uint64_t offset = task % slices_ * shape_.count * StepBytes(tensor, shape_.dim);
    uint64_t outer = task / slices_;
    for (uint32_t d = shape_.dim; d-- > 0;) {
      const uint32_t size = desc_.outputs[0]->sizes[d];
      offset += outer % size * StepBytes(tensor, d);
      outer /= size;
    }
    return offset;
  }

  const OperatorDesc desc_;
  const SliceShape shape_;
  const CpuPlan whole_;
  std::optional<CpuPlan> rest_;
  uint64_t slices_ = 1;  // along the dimension that is cut
};

}  // namespace

bool CanSlice(const OperatorDesc& validated) {
  if (!IsLowered(validated) || FirstAxis(validated) == 0) return false;
  const TensorDesc& output = *validated.outputs[0];
  if (!IsPacked(output)) return false;
  // Slices must not share a word: what computes one fills its last word with zeros.
  const SliceShape shape = ShapeOf(validated);
  uint64_t bytes = ElementBytes(output.data_type);
  for (size_t d = shape.dim + 1; d < output.sizes.size(); ++d) bytes *= output.sizes[d];
  return bytes * shape.count % 4 == 0 && bytes * output.sizes[shape.dim] % 4 == 0;
}

std::unique_ptr<CpuProgram> MakeSlicedProgram(const OperatorDesc& validated) {
  return std::make_unique<SlicedProgram>(validated);
}

}  // namespace opmill
