#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/base/rounding.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/elementwise/chain_ranges.h"

namespace opmill {
namespace {

// Of a task. Each thread reads what it has written in the step before, if there are several tasks.
constexpr uint64_t kMostElements = uint64_t{1} << 16;
constexpr uint64_t kLeastElements = uint64_t{1} << 12;
constexpr uint64_t kWantedTasks = 4;

class MapProgram : public CpuProgram {
 public:
  explicit MapProgram(Chain chain) : ranges_(std::move(chain)) {
    const uint64_t wanted = RoundUp(CeilDiv(ranges_.size(), kWantedTasks), kLeastElements / 16);
    task_elements_ = std::clamp(wanted, kLeastElements, kMostElements);
    phases_ = {CeilDiv(ranges_.size(), task_elements_)};
    uint64_t bytes = ElementBytes(ranges_.chain().output.data_type);
    for (const TensorDesc& input : ranges_.chain().inputs) bytes += ElementBytes(input.data_type);
    cost_bytes_ = ranges_.size() * bytes;
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t first = task * task_elements_;
    ChainRanges::Tensors tensors = {.output = buffers.outputs[0]};
    std::copy_n(buffers.inputs.begin(), ranges_.chain().inputs.size(), tensors.inputs.begin());
    ranges_.Run(first, std::min(task_elements_, ranges_.size() - first), tensors);
  }

 private:
  const ChainRanges ranges_;
  uint64_t task_elements_ = kMostElements;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuElementWise(const OperatorDesc& desc) {
  return std::make_unique<MapProgram>(ChainOf(desc));
}

}  // namespace opmill
