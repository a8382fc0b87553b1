#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/base/rounding.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/operators/elementwise/chain_ranges.h"

namespace opmill {
namespace {

constexpr uint64_t kTaskElements = uint64_t{1} << 16;

class MapProgram : public CpuProgram {
 public:
  explicit MapProgram(Chain chain) : ranges_(std::move(chain)) {
    phases_ = {CeilDiv(ranges_.size(), kTaskElements)};
    uint64_t bytes = ElementBytes(ranges_.chain().output.data_type);
    for (const TensorDesc& input : ranges_.chain().inputs) bytes += ElementBytes(input.data_type);
    cost_bytes_ = ranges_.size() * bytes;
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t first = task * kTaskElements;
    ChainRanges::Tensors tensors = {.output = buffers.outputs[0]};
    std::copy_n(buffers.inputs.begin(), ranges_.chain().inputs.size(), tensors.inputs.begin());
    ranges_.Run(first, std::min(kTaskElements, ranges_.size() - first), tensors);
  }

 private:
  const ChainRanges ranges_;
};

}  // namespace

std::unique_ptr<CpuProgram> CpuElementWise(const OperatorDesc& desc) {
  return std::make_unique<MapProgram>(ChainOf(desc));
}

}  // namespace opmill
