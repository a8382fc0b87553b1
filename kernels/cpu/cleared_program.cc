#include "kernels/cpu/cleared_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace opmill {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;

class ClearedProgram : public CpuProgram {
 public:
  ClearedProgram(std::unique_ptr<const CpuProgram> program, std::vector<uint64_t> output_bytes)
      : program_(std::move(program)), output_bytes_(std::move(output_bytes)) {
    uint64_t blocks = 0;
    cost_bytes_ = program_->cost_bytes();
    for (const uint64_t bytes : output_bytes_) {
      blocks += Blocks(bytes);
      cost_bytes_ += bytes;
    }
    phases_ = program_->phases();
    phases_.insert(phases_.begin(), blocks);
    scratch_bytes_ = program_->scratch_bytes();
    task_bytes_ = program_->task_bytes();
    step_bytes_ = program_->step_bytes();
    state_bytes_ = program_->state_bytes();
    rounding_ = program_->rounding();
  }

  // Steps write every element, so that only the padding is left.
  std::unique_ptr<CpuSteps> Steps(const RunBuffers& buffers) const override {
    for (size_t i = 0; i < output_bytes_.size(); ++i) {
      const uint64_t padded = std::min<uint64_t>(output_bytes_[i], 4);
      std::memset(buffers.outputs[i] + output_bytes_[i] - padded, 0, padded);
    }
    return program_->Steps(buffers);
  }

  void Run(size_t phase, uint64_t task, const RunBuffers& buffers) const override {
    if (phase > 0) {
      program_->Run(phase - 1, task, buffers);
      return;
    }
    size_t output = 0;
    for (; task >= Blocks(output_bytes_[output]); ++output) task -= Blocks(output_bytes_[output]);
    const uint64_t begin = task * kBlockBytes;
    std::memset(buffers.outputs[output] + begin, 0,
                std::min(kBlockBytes, output_bytes_[output] - begin));
  }

 private:
  static uint64_t Blocks(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

  const std::unique_ptr<const CpuProgram> program_;
  const std::vector<uint64_t> output_bytes_;
};

}  // namespace

std::unique_ptr<CpuProgram> MakeClearedProgram(std::unique_ptr<const CpuProgram> program,
                                               std::vector<uint64_t> output_bytes) {
  return std::make_unique<ClearedProgram>(std::move(program), std::move(output_bytes));
}

}  // namespace opmill
