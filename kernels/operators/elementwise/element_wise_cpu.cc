#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/rounding.h"
#include "kernels/cpu/cpu_program.h"
#include "kernels/cpu/element_dispatch.h"
#include "kernels/dims/elementwise_space.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"

namespace opmill {
namespace {

constexpr uint64_t kTaskElements = uint64_t{1} << 16;
// Of a chain that goes through memory: its values stay in the first cache.
constexpr size_t kBlock = 512;

MapKernel KernelOf(const Chain& chain, const ChainStep& step) {
  const DataType type = chain.TypeOf(step.operands.back());
  const ElementWiseResult result = RowOf(step.op).result;
  if (result == ElementWiseResult::kCast) return CastMapKernel(type, step.type);
  if (!IsFloat(type) || result == ElementWiseResult::kMove) {
    return IntegerMapKernel(step.op, type, step.type);
  }
  return FloatMapKernel(step.op, step.type);
}

// A chain whose value can stay in registers: FLOAT32 steps, each of which takes the value before
// it.
struct FusedChain {
  uint32_t first = 0;  // the input that is the first value
  std::vector<FusedStep> steps;
};

std::optional<FusedChain> FuseChain(const Chain& chain) {
  const size_t inputs = chain.inputs.size();
  FusedChain fused;
  for (size_t s = 0; s < chain.steps.size(); ++s) {
    const ChainStep& step = chain.steps[s];
    if (step.type != DataType::kFloat32 || !CanFuse(step.op)) return std::nullopt;
    for (const uint32_t operand : step.operands) {
      if (chain.TypeOf(operand) != DataType::kFloat32) return std::nullopt;
    }
    if (s == 0) fused.first = step.operands[0];
    const uint32_t value = s == 0 ? fused.first : static_cast<uint32_t>(inputs + s - 1);
    const auto is_input = [&](uint32_t operand) { return operand < inputs; };
    FusedStep& to = fused.steps.emplace_back(FusedStep{.op = step.op});
    for (size_t i = 0; i < step.parameters.size(); ++i) {
      to.parameters[i] = std::bit_cast<float>(static_cast<uint32_t>(step.parameters[i]));
    }
    const uint32_t a = step.operands[0];
    const uint32_t b = step.operands.back();
    if (a == value && b == value) {
      to.operands = FusedStep::Operands::kValueValue;
    } else if (a == value && is_input(b)) {
      to.operands = FusedStep::Operands::kValueInput;
      to.input = b;
    } else if (b == value && is_input(a)) {
      to.operands = FusedStep::Operands::kInputValue;
      to.input = a;
    } else {
      return std::nullopt;
    }
  }
  return fused;
}

class MapProgram : public CpuProgram {
 public:
  explicit MapProgram(Chain chain) : chain_(std::move(chain)), fused_(FuseChain(chain_)) {
    const ElementwiseSpace space = MakeElementwiseSpace(chain_.inputs, chain_.output);
    row_ = space.row();
    outer_.assign(space.dims.begin(), space.dims.end() - 1);
    rows_ = CountOf(outer_);
    for (const ChainStep& step : chain_.steps) kernels_.push_back(KernelOf(chain_, step));
    rows_a_task_ = std::max<uint64_t>(1, kTaskElements / row_.size);
    parts_ = CeilDiv(row_.size, kTaskElements);
    phases_ = {CeilDiv(rows_, rows_a_task_) * parts_};
    uint64_t bytes = ElementBytes(chain_.output.data_type);
    for (const TensorDesc& input : chain_.inputs) bytes += ElementBytes(input.data_type);
    cost_bytes_ = rows_ * row_.size * bytes;
  }

  void Run(size_t /*phase*/, uint64_t task, const RunBuffers& buffers) const override {
    const uint64_t first = task % parts_ * kTaskElements;
    const uint64_t count = std::min(kTaskElements, row_.size - first);
    const uint64_t begin = task / parts_ * rows_a_task_;
    Scratch scratch(*this);
    Walk rows(outer_, begin);
    for (uint64_t row = begin; row < std::min(begin + rows_a_task_, rows_); ++row, rows.Next()) {
      ElementwiseOffsets at = rows.offsets();
      Advance(at, row_, first);
      RunRow(buffers, at, count, scratch);
    }
  }

 private:
  // The arrays of a block: inputs that are not used in place, results of steps, the output.
  struct Scratch {
    explicit Scratch(const MapProgram& program)
        : values(program.chain_.inputs.size() + program.chain_.steps.size() + 1),
          bytes(values * kBlock * sizeof(uint64_t)),
          memory(new (std::align_val_t(64)) std::byte[bytes]) {}
    std::byte* array(size_t value) { return memory.get() + value * kBlock * sizeof(uint64_t); }

    struct Free {
      void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(64)); }
    };
    size_t values;
    size_t bytes;
    std::unique_ptr<std::byte[], Free> memory;
  };

  // Whether the elements of an input are read in place, one after another.
  bool IsInPlace(size_t input) const {
    return row_.strides[input] == 1 && chain_.inputs[input].data_type != DataType::kFloat16;
  }

  // A block of an input, as an array of values.
  const std::byte* Load(size_t input, const std::byte* from, size_t count, std::byte* to) const {
    const DataType type = chain_.inputs[input].data_type;
    if (IsInPlace(input)) return from;
    const uint64_t stride = row_.strides[input];
    if (stride == 0) return LoadRepeated(type, from, count, to);
    if (type == DataType::kFloat16) {
      const auto* halves = reinterpret_cast<const uint16_t*>(from);
      uint16_t gathered[kBlock];
      if (stride != 1) {
        for (size_t i = 0; i < count; ++i) gathered[i] = halves[i * stride];
        halves = gathered;
      }
      FloatsFromHalves(halves, reinterpret_cast<float*>(to), count);
      return to;
    }
    WithWordOf(ElementBytes(type), [&](auto word) {
      using Word = decltype(word);
      const auto* elements = reinterpret_cast<const Word*>(from);
      auto* array = reinterpret_cast<Word*>(to);
      for (size_t i = 0; i < count; ++i) array[i] = elements[i * stride];
    });
    return to;
  }

  // An element that stands for all. The accumulator machine reads a whole block of it.
  static const std::byte* LoadRepeated(DataType type, const std::byte* from, size_t count,
                                       std::byte* to) {
    count = std::min(kBlock, RoundUp(count, FusedBlock()));
    size_t element_bytes = ElementBytes(type);
    if (type == DataType::kFloat16) {
      element_bytes = sizeof(float);
      FloatsFromHalves(reinterpret_cast<const uint16_t*>(from), reinterpret_cast<float*>(to), 1);
    } else {
      std::memcpy(to, from, element_bytes);
    }
    for (size_t done = 1; done < count; done *= 2) {
      std::memcpy(to + done * element_bytes, to, std::min(done, count - done) * element_bytes);
    }
    return to;
  }

  bool IsOutputInPlace() const {
    return row_.strides[kTensorOutput] == 1 && chain_.output.data_type != DataType::kFloat16;
  }

  void StoreBlock(const std::byte* from, size_t count, std::byte* to) const {
    const DataType type = chain_.output.data_type;
    const uint64_t stride = row_.strides[kTensorOutput];
    uint16_t halves[kBlock];
    if (type == DataType::kFloat16) {
      auto* const packed = stride == 1 ? reinterpret_cast<uint16_t*>(to) : halves;
      HalvesFromFloats(reinterpret_cast<const float*>(from), packed, count);
      if (stride == 1) return;
      from = reinterpret_cast<const std::byte*>(halves);
    }
    WithWordOf(ElementBytes(type), [&](auto word) {
      using Word = decltype(word);
      const auto* array = reinterpret_cast<const Word*>(from);
      auto* elements = reinterpret_cast<Word*>(to);
      for (size_t i = 0; i < count; ++i) elements[i * stride] = array[i];
    });
  }

  void RunRow(const RunBuffers& buffers, const ElementwiseOffsets& at, uint64_t count,
              Scratch& scratch) const {
    const auto place = [&](size_t tensor, DataType type, uint64_t element) {
      return (at[tensor] + element * row_.strides[tensor]) * ElementBytes(type);
    };
    bool whole = fused_.has_value() && IsOutputInPlace();
    for (size_t i = 0; i < chain_.inputs.size(); ++i) {
      whole = whole && (IsInPlace(i) || row_.strides[i] == 0);
    }
    const size_t step = whole ? count : kBlock;
    for (uint64_t done = 0; done < count; done += step) {
      const size_t size = std::min<uint64_t>(step, count - done);
      std::array<const std::byte*, kMaxChainInputs> inputs = {};
      for (size_t i = 0; i < chain_.inputs.size(); ++i) {
        inputs[i] = Load(i, buffers.inputs[i] + place(i, chain_.inputs[i].data_type, done),
                         std::min(size, kBlock), scratch.array(i));
      }
      std::byte* const output =
          buffers.outputs[0] + place(kTensorOutput, chain_.output.data_type, done);
      std::byte* const result = IsOutputInPlace() ? output : scratch.array(scratch.values - 1);
      if (fused_.has_value()) {
        RunFusedBlock(inputs, result, size);
      } else {
        RunSteps(inputs, result, size, scratch);
      }
      if (result != output) StoreBlock(result, size, output);
    }
  }

  void RunFusedBlock(const std::array<const std::byte*, kMaxChainInputs>& inputs, std::byte* result,
                     size_t count) const {
    std::array<FusedInput, kMaxChainInputs> sources;
    for (size_t i = 0; i < chain_.inputs.size(); ++i) {
      sources[i] = {.elements = reinterpret_cast<const float*>(inputs[i]),
                    .step = row_.strides[i] == 0 ? size_t{0} : size_t{1}};
    }
    RunFused(fused_->steps, absl::MakeConstSpan(sources).first(chain_.inputs.size()), fused_->first,
             reinterpret_cast<float*>(result), count);
  }

  void RunSteps(const std::array<const std::byte*, kMaxChainInputs>& inputs, std::byte* result,
                size_t count, Scratch& scratch) const {
    const size_t input_count = chain_.inputs.size();
    for (size_t s = 0; s < chain_.steps.size(); ++s) {
      const ChainStep& step = chain_.steps[s];
      MapArguments arguments = {.count = count};
      for (size_t i = 0; i < step.operands.size(); ++i) {
        const uint32_t operand = step.operands[i];
        arguments.operands[i] = operand < input_count ? inputs[operand] : scratch.array(operand);
      }
      std::copy(step.parameters.begin(), step.parameters.end(), arguments.parameters);
      const bool is_last = s + 1 == chain_.steps.size();
      std::byte* const to = is_last ? result : scratch.array(input_count + s);
      arguments.result = to;
      kernels_[s](arguments);
      if (!is_last && step.type == DataType::kFloat16) RoundToHalves(to, count);
    }
  }

  static void RoundToHalves(std::byte* values, size_t count) {
    uint16_t halves[kBlock];
    auto* const floats = reinterpret_cast<float*>(values);
    HalvesFromFloats(floats, halves, count);
    FloatsFromHalves(halves, floats, count);
  }

  const Chain chain_;
  const std::optional<FusedChain> fused_;
  std::vector<MapKernel> kernels_;  // of the steps
  Dims<kElementwiseTensors> outer_;
  ElementwiseSpace::Dim row_;
  uint64_t rows_ = 1;
  uint64_t rows_a_task_ = 1;
  uint64_t parts_ = 1;  // parts per row
};

}  // namespace

std::unique_ptr<const CpuProgram> CpuElementWise(const OperatorDesc& desc) {
  return std::make_unique<MapProgram>(ChainOf(desc));
}

}  // namespace opmill
