#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/base/per_thread.h"
#include "kernels/base/rounding.h"
#include "kernels/cpu/element_dispatch.h"
#include "kernels/operators/elementwise/chain_ranges.h"

namespace opmill {
namespace {

// Of a chain that goes through memory: its values stay in the first cache.
constexpr size_t kBlock = 512;
// Of an array, with a line more, so that not all arrays are in the same sets of the cache.
constexpr size_t kArrayBytes = kBlock * sizeof(uint64_t) + 64;

// The arrays of a block that a thread keeps. Longer chains allocate theirs.
struct KeptArrays {
  static constexpr size_t kCount = 48;
  alignas(64) std::byte bytes[kCount * kArrayBytes];
};
constinit PerThread<KeptArrays> kept_arrays;

MapKernel KernelOf(const Chain& chain, const ChainStep& step) {
  const DataType type = chain.TypeOf(step.operands.back());
  const ElementWiseResult result = RowOf(step.op).result;
  if (result == ElementWiseResult::kCast) return CastMapKernel(type, step.type);
  if (!IsFloat(type) || result == ElementWiseResult::kMove) {
    return IntegerMapKernel(step.op, type, step.type);
  }
  return FloatMapKernel(step.op, step.type);
}

void RoundToHalves(std::byte* values, size_t count) {
  uint16_t halves[kBlock];
  auto* const floats = reinterpret_cast<float*>(values);
  HalvesFromFloats(floats, halves, count);
  FloatsFromHalves(halves, floats, count);
}

}  // namespace

// Inputs that are not used in place, results of steps, the output.
struct ChainRanges::Memory {
  explicit Memory(size_t arrays) : kept(kept_arrays) {
    if (arrays > KeptArrays::kCount) own.resize(CeilDiv(arrays, KeptArrays::kCount));
  }
  std::byte* array(size_t value) {
    return (own.empty() ? kept->bytes : own[0].bytes) + value * kArrayBytes;
  }

  PerThread<KeptArrays>::Use kept;
  std::vector<KeptArrays> own;
};

ChainRanges::ChainRanges(Chain chain) : chain_(std::move(chain)), fused_(Fuse(chain_)) {
  const ElementwiseSpace space = MakeElementwiseSpace(chain_.inputs, chain_.output);
  row_ = space.row();
  outer_.assign(space.dims.begin(), space.dims.end() - 1);
  rows_ = CountOf(outer_);
  for (const ChainStep& step : chain_.steps) kernels_.push_back(KernelOf(chain_, step));
  whole_rows_ = fused_.has_value() && IsOutputInPlace();
  for (size_t i = 0; i < chain_.inputs.size(); ++i) {
    whole_rows_ = whole_rows_ && (IsInPlace(i) || row_.strides[i] == 0);
  }
  joined_rows_ = JoinedRows();
  whole_rows_ = whole_rows_ && joined_rows_ == 1;
}

// Of rows that are adjacent wherever they are not a single element for each row, which is repeated.
uint64_t ChainRanges::JoinedRows() const {
  constexpr uint64_t kShortRow = 64;
  if (outer_.empty() || row_.size > kShortRow || !IsOutputInPlace()) return 1;
  const ElementwiseOffsets& strides = outer_.back().strides;
  if (strides[kTensorOutput] != row_.size) return 1;
  for (size_t i = 0; i < chain_.inputs.size(); ++i) {
    const bool is_repeated =
        row_.strides[i] == 0 && chain_.inputs[i].data_type != DataType::kFloat16;
    if (!is_repeated && !(IsInPlace(i) && strides[i] == row_.size)) return 1;
  }
  return std::min(kBlock / row_.size, outer_.back().size);
}

void ChainRanges::Run(uint64_t first, uint64_t count, const Tensors& tensors) const {
  std::optional<Memory> memory;
  if (!whole_rows_) memory.emplace(chain_.inputs.size() + chain_.steps.size() + 1);
  if (joined_rows_ > 1) {
    RunShortRows(first, count, tensors, *memory);
    return;
  }
  Walk rows(outer_, first / row_.size);
  for (uint64_t at = first % row_.size; count > 0; at = 0, rows.Next()) {
    const uint64_t some = std::min(count, row_.size - at);
    ElementwiseOffsets offsets = rows.offsets();
    Advance(offsets, row_, at);
    if (whole_rows_) {
      RunWholeRow(tensors, offsets, some);
    } else {
      RunRow(tensors, offsets, some, *memory);
    }
    count -= some;
  }
}

std::optional<ChainRanges::FusedChain> ChainRanges::Fuse(const Chain& chain) {
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

// Whether the elements of an input are read in place, one after another.
bool ChainRanges::IsInPlace(size_t input) const {
  return row_.strides[input] == 1 && chain_.inputs[input].data_type != DataType::kFloat16;
}

// A block of an input, as an array of values.
const std::byte* ChainRanges::Load(size_t input, const std::byte* from, size_t count,
                                   std::byte* to) const {
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

// An element that stands for all. The accumulator machine reads only the first.
const std::byte* ChainRanges::LoadRepeated(DataType type, const std::byte* from, size_t count,
                                           std::byte* to) const {
  if (fused_.has_value()) count = 1;
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

bool ChainRanges::IsOutputInPlace() const {
  return row_.strides[kTensorOutput] == 1 && chain_.output.data_type != DataType::kFloat16;
}

void ChainRanges::StoreBlock(const std::byte* from, size_t count, std::byte* to) const {
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

void ChainRanges::RunRow(const Tensors& tensors, const ElementwiseOffsets& at, uint64_t count,
                         Memory& memory) const {
  const auto place = [&](size_t tensor, DataType type, uint64_t element) {
    return (at[tensor] + element * row_.strides[tensor]) * ElementBytes(type);
  };
  for (uint64_t done = 0; done < count; done += kBlock) {
    const size_t size = std::min<uint64_t>(kBlock, count - done);
    std::array<const std::byte*, kMaxChainInputs> inputs = {};
    for (size_t i = 0; i < chain_.inputs.size(); ++i) {
      inputs[i] = Load(i, tensors.inputs[i] + place(i, chain_.inputs[i].data_type, done), size,
                       memory.array(i));
    }
    RunBlock(inputs, tensors.output + place(kTensorOutput, chain_.output.data_type, done), size, 1,
             memory);
  }
}

void ChainRanges::RunBlock(const std::array<const std::byte*, kMaxChainInputs>& inputs,
                           std::byte* output, size_t count, uint64_t rows, Memory& memory) const {
  std::byte* const result =
      IsOutputInPlace() ? output : memory.array(chain_.inputs.size() + chain_.steps.size());
  if (fused_.has_value()) {
    RunFusedBlock(inputs, result, count, rows);
  } else {
    RunSteps(inputs, result, count, memory);
  }
  if (result != output) StoreBlock(result, count, output);
}

void ChainRanges::RunShortRows(uint64_t first, uint64_t count, const Tensors& tensors,
                               Memory& memory) const {
  const uint64_t outer = outer_.back().size;
  while (count > 0) {
    const uint64_t row = first / row_.size;
    const uint64_t at = first % row_.size;
    const uint64_t rows = std::min({joined_rows_, count / row_.size, outer - row % outer});
    ElementwiseOffsets offsets = Walk(outer_, row).offsets();
    uint64_t some = rows * row_.size;
    if (at == 0 && rows > 1) {
      RunJoinedRows(tensors, offsets, rows, memory);
    } else {
      some = std::min(count, row_.size - at);
      Advance(offsets, row_, at);
      RunRow(tensors, offsets, some, memory);
    }
    first += some;
    count -= some;
  }
}

void ChainRanges::RunJoinedRows(const Tensors& tensors, const ElementwiseOffsets& at, uint64_t rows,
                                Memory& memory) const {
  std::array<const std::byte*, kMaxChainInputs> inputs = {};
  for (size_t i = 0; i < chain_.inputs.size(); ++i) {
    const DataType type = chain_.inputs[i].data_type;
    const std::byte* const from = tensors.inputs[i] + at[i] * ElementBytes(type);
    std::byte* const to = memory.array(i);
    const uint64_t stride = outer_.back().strides[i];
    inputs[i] = row_.strides[i] == 1 ? from : to;
    if (row_.strides[i] == 1) continue;
    if (stride == 0) {
      LoadRepeated(type, from, rows * row_.size, to);
      continue;
    }
    WithWordOf(ElementBytes(type), [&](auto word) {
      using Word = decltype(word);
      for (uint64_t r = 0; r < rows; ++r) {
        std::fill_n(reinterpret_cast<Word*>(to) + r * row_.size, row_.size,
                    reinterpret_cast<const Word*>(from)[r * stride]);
      }
    });
  }
  RunBlock(inputs, tensors.output + at[kTensorOutput] * ElementBytes(chain_.output.data_type),
           rows * row_.size, rows, memory);
}

void ChainRanges::RunWholeRow(const Tensors& tensors, const ElementwiseOffsets& at,
                              uint64_t count) const {
  std::array<const std::byte*, kMaxChainInputs> inputs = {};
  for (size_t i = 0; i < chain_.inputs.size(); ++i) {
    inputs[i] = tensors.inputs[i] + at[i] * sizeof(float);
  }
  RunFusedBlock(inputs, tensors.output + at[kTensorOutput] * sizeof(float), count, 1);
}

void ChainRanges::RunFusedBlock(const std::array<const std::byte*, kMaxChainInputs>& inputs,
                                std::byte* result, size_t count, uint64_t rows) const {
  std::array<FusedInput, kMaxChainInputs> sources;
  for (size_t i = 0; i < chain_.inputs.size(); ++i) {
    const bool is_one = row_.strides[i] == 0 && (rows == 1 || outer_.back().strides[i] == 0);
    sources[i] = {.elements = reinterpret_cast<const float*>(inputs[i]),
                  .step = is_one ? size_t{0} : size_t{1}};
  }
  RunFused(fused_->steps, absl::MakeConstSpan(sources).first(chain_.inputs.size()), fused_->first,
           reinterpret_cast<float*>(result), count);
}

void ChainRanges::RunSteps(const std::array<const std::byte*, kMaxChainInputs>& inputs,
                           std::byte* result, size_t count, Memory& memory) const {
  const size_t input_count = chain_.inputs.size();
  for (size_t s = 0; s < chain_.steps.size(); ++s) {
    const ChainStep& step = chain_.steps[s];
    MapArguments arguments = {.count = count};
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const uint32_t operand = step.operands[i];
      arguments.operands[i] = operand < input_count ? inputs[operand] : memory.array(operand);
    }
    std::copy(step.parameters.begin(), step.parameters.end(), arguments.parameters);
    const bool is_last = s + 1 == chain_.steps.size();
    std::byte* const to = is_last ? result : memory.array(input_count + s);
    arguments.result = to;
    kernels_[s](arguments);
    if (!is_last && step.type == DataType::kFloat16) RoundToHalves(to, count);
  }
}

namespace {

class ChainFollower : public CpuFollower {
 public:
  ChainFollower(Chain chain, size_t value, size_t operator_inputs)
      : ranges_(std::move(chain)), value_(value), operator_inputs_(operator_inputs) {}

  void Run(uint64_t first, uint64_t count, const RunBuffers& buffers) const override {
    ChainRanges::Tensors tensors = {.output = buffers.outputs[0]};
    size_t other = operator_inputs_;
    for (size_t i = 0; i < ranges_.chain().inputs.size(); ++i) {
      tensors.inputs[i] = i == value_ ? buffers.outputs[0] : buffers.inputs[other++];
    }
    ranges_.Run(first, count, tensors);
  }

  bool IsRelu() const override {
    const Chain& chain = ranges_.chain();
    return chain.steps.size() == 1 && chain.steps[0].op == ElementWiseOp::kRelu &&
           chain.output.data_type == DataType::kFloat32;
  }

 private:
  const ChainRanges ranges_;
  const size_t value_;
  const size_t operator_inputs_;
};

}  // namespace

std::unique_ptr<const CpuFollower> MakeChainFollower(Chain chain, size_t value,
                                                     size_t operator_inputs) {
  const TensorDesc& input = chain.inputs[value];
  if (operator_inputs + chain.inputs.size() - 1 > kMaxInputs || !IsPacked(input) ||
      !IsPacked(chain.output) || input.data_type != chain.output.data_type) {
    return nullptr;
  }
  return std::make_unique<ChainFollower>(std::move(chain), value, operator_inputs);
}

}  // namespace opmill
