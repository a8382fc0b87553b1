#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/element_dispatch.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"

namespace opmill {
namespace {

constexpr uint64_t kTaskElements = uint64_t{1} << 16;

// Floats are added in FLOAT64, so rounding errors do not affect the results.
template <typename T>
struct Sums {
  using Sum = T;
  static Sum Of(T element) { return element; }
  static T Stored(Sum sum) { return sum; }
};
template <>
struct Sums<float> {
  using Sum = double;
  static Sum Of(float element) { return element; }
  static float Stored(Sum sum) { return static_cast<float>(sum); }
};
template <>
struct Sums<CpuHalf> {
  using Sum = double;
  static Sum Of(CpuHalf element) { return HalfToFloat(element.bits); }
  static CpuHalf Stored(Sum sum) { return {FloatToHalf(static_cast<float>(sum))}; }
};

// A task processes several sequences.
template <typename T>
class SumsProgram : public CpuProgram {
 public:
  SumsProgram(SpaceDims kept, SpaceDim axis, bool decreasing, bool exclusive)
      : kept_(std::move(kept)), axis_(axis), decreasing_(decreasing), exclusive_(exclusive) {
    MergeDims(kept_);
    sequences_ = CountOf(kept_);
    sequences_a_task_ = std::max<uint64_t>(1, kTaskElements / axis_.size);
    phases_ = {CeilDiv(sequences_, sequences_a_task_)};
    cost_bytes_ = 2 * sequences_ * axis_.size * sizeof(T);
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    const T* const input = reinterpret_cast<const T*>(buffers.inputs[0]);
    T* const output = reinterpret_cast<T*>(buffers.outputs[0]);
    const uint64_t first = task * sequences_a_task_;
    Walk at(kept_, first);
    for (uint64_t s = first; s < std::min(first + sequences_a_task_, sequences_); ++s, at.Next()) {
      SumSequence(input + at.offset(kInputTensor), output + at.offset(kOutputTensor));
    }
  }

 private:
  void SumSequence(const T* input, T* output) const {
    typename Sums<T>::Sum sum = {};
    for (uint64_t i = 0; i < axis_.size; ++i) {
      const uint64_t position = decreasing_ ? axis_.size - 1 - i : i;
      const auto before = sum;
      sum += Sums<T>::Of(input[position * axis_.strides[kInputTensor]]);
      output[position * axis_.strides[kOutputTensor]] = Sums<T>::Stored(exclusive_ ? before : sum);
    }
  }

  SpaceDims kept_;
  const SpaceDim axis_;
  const bool decreasing_;
  const bool exclusive_;
  uint64_t sequences_ = 1;
  uint64_t sequences_a_task_ = 1;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuCumulativeSummation(const OperatorDesc& operator_desc) {
  const CumulativeSummationDesc desc = CumulativeSummationDesc::From(operator_desc);
  const IterationSpace space = SplitDims(desc.input, {desc.axis}, *desc.output);
  return WithElementOf(
      desc.input.data_type, [&](auto element) -> std::unique_ptr<CpuProgram> {
        return std::make_unique<SumsProgram<decltype(element)>>(
            space.kept, space.reduced[0], desc.axis_direction == AxisDirection::kDecreasing,
            desc.has_exclusive_sum);
      });
}

}  // namespace opmill
