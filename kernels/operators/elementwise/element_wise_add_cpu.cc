#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/element_dispatch.h"
#include "kernels/cpu/strided_walk.h"
#include "kernels/operators/elementwise/element_wise_add_desc.h"

namespace opmill {
namespace {

constexpr uint64_t kTaskElements = uint64_t{1} << 16;

template <typename T>
T Add(T a, T b) {
  return static_cast<T>(a + b);
}

float Add(float a, float b) {
  const float sum = a + b;
  return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum;
}

// Rounding the sum to 24 bits first does not change the result, which has 11 bits.
CpuHalf Add(CpuHalf a, CpuHalf b) {
  const float sum = HalfToFloat(a.bits) + HalfToFloat(b.bits);
  return {std::isnan(sum) ? uint16_t{0x7E00} : FloatToHalf(sum)};
}

// The walk's names for strides: input for a, output, indices for b.
template <typename T>
class AddProgram : public CpuProgram {
 public:
  explicit AddProgram(std::vector<WorkDim> dims) : dims_(std::move(dims)) {
    MergeDims(dims_);
    if (!dims_.empty()) {
      row_ = dims_.back();
      dims_.pop_back();
    }
    rows_a_task_ = std::max<uint64_t>(1, kTaskElements / row_.size);
    parts_ = CeilDiv(row_.size, kTaskElements);
    rows_ = CountOf(dims_);
    phases_ = {CeilDiv(rows_, rows_a_task_) * parts_};
    cost_bytes_ = 3 * rows_ * row_.size * sizeof(T);
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    const T* const a = reinterpret_cast<const T*>(buffers.inputs[0]);
    const T* const b = reinterpret_cast<const T*>(buffers.inputs[1]);
    T* const output = reinterpret_cast<T*>(buffers.outputs[0]);
    const uint64_t first = task % parts_ * kTaskElements;
    const uint64_t count = std::min(kTaskElements, row_.size - first);
    const uint64_t row = task / parts_ * rows_a_task_;
    Walk at(dims_, row);
    for (uint64_t r = row; r < std::min(row + rows_a_task_, rows_); ++r, at.Next()) {
      AddRow(a + at.input() + first * row_.input, b + at.indices() + first * row_.indices,
             output + at.output() + first * row_.output, count);
    }
  }

 private:
  void AddRow(const T* a, const T* b, T* output, uint64_t count) const {
    if (row_.output == 1 && row_.input == 1 && row_.indices == 1) {
      for (uint64_t i = 0; i < count; ++i) output[i] = Add(a[i], b[i]);
    } else if (row_.output == 1 && row_.input == 1 && row_.indices == 0) {
      for (uint64_t i = 0; i < count; ++i) output[i] = Add(a[i], b[0]);
    } else {
      for (uint64_t i = 0; i < count; ++i) {
        output[i * row_.output] = Add(a[i * row_.input], b[i * row_.indices]);
      }
    }
  }

  std::vector<WorkDim> dims_;  // all dimensions but the last
  WorkDim row_;
  uint64_t rows_ = 1;
  uint64_t rows_a_task_ = 1;
  uint64_t parts_ = 1;  // parts per row
};

}  // namespace

std::unique_ptr<const CpuProgram> CpuElementWiseAdd(const OperatorDesc& operator_desc) {
  const ElementWiseAddDesc desc = ElementWiseAddDesc::From(operator_desc);
  const std::vector<uint32_t> a = EffectiveStrides(desc.a);
  const std::vector<uint32_t> b = EffectiveStrides(desc.b);
  const std::vector<uint32_t> output = EffectiveStrides(*desc.output);
  std::vector<WorkDim> dims;
  for (size_t d = 0; d < a.size(); ++d) {
    if (desc.a.sizes[d] > 1) dims.push_back({desc.a.sizes[d], a[d], output[d], b[d]});
  }
  return WithElementOf(desc.a.data_type, [&](auto element) -> std::unique_ptr<const CpuProgram> {
    return std::make_unique<AddProgram<decltype(element)>>(std::move(dims));
  });
}

}  // namespace opmill
