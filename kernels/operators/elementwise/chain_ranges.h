// Computes a chain on the processor.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_CHAIN_RANGES_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_CHAIN_RANGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/cpu_program.h"
#include "kernels/dims/elementwise_space.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/elementwise/element_wise_kernels.h"

namespace opmill {

// Any ranges of the output's elements, in the order of its memory. Immutable.
class ChainRanges {
 public:
  // The addresses of tensors.
  struct Tensors {
    std::array<const std::byte*, kMaxChainInputs> inputs = {};
    std::byte* output = nullptr;  // may be that of an input with the output's elements
  };

  explicit ChainRanges(Chain chain);

  const Chain& chain() const { return chain_; }
  uint64_t size() const { return rows_ * row_.size; }
  void Run(uint64_t first, uint64_t count, const Tensors& tensors) const;

 private:
  // A chain whose value can stay in registers: FLOAT32 steps, each of which takes the value before
  // it.
  struct FusedChain {
    uint32_t first = 0;  // the input that is the first value
    std::vector<FusedStep> steps;
  };
  struct Memory;

  static std::optional<FusedChain> Fuse(const Chain& chain);
  bool IsInPlace(size_t input) const;
  bool IsOutputInPlace() const;
  const std::byte* Load(size_t input, const std::byte* from, size_t count, std::byte* to) const;
  const std::byte* LoadRepeated(DataType type, const std::byte* from, size_t count,
                                std::byte* to) const;
  void StoreBlock(const std::byte* from, size_t count, std::byte* to) const;
  void RunRow(const Tensors& tensors, const ElementwiseOffsets& at, uint64_t count,
              Memory& memory) const;
  void RunWholeRow(const Tensors& tensors, const ElementwiseOffsets& at, uint64_t count) const;
  void RunShortRows(uint64_t first, uint64_t count, const Tensors& tensors, Memory& memory) const;
  void RunJoinedRows(const Tensors& tensors, const ElementwiseOffsets& at, uint64_t rows,
                     Memory& memory) const;
  uint64_t JoinedRows() const;
  // `rows` that are one block.
  void RunBlock(const std::array<const std::byte*, kMaxChainInputs>& inputs, std::byte* output,
                size_t count, uint64_t rows, Memory& memory) const;
  void RunFusedBlock(const std::array<const std::byte*, kMaxChainInputs>& inputs, std::byte* result,
                     size_t count, uint64_t rows) const;
  void RunSteps(const std::array<const std::byte*, kMaxChainInputs>& inputs, std::byte* result,
                size_t count, Memory& memory) const;

  const Chain chain_;
  const std::optional<FusedChain> fused_;
  std::vector<MapKernel> kernels_;  // of the steps
  Dims<kElementwiseTensors> outer_;
  ElementwiseSpace::Dim row_;
  uint64_t rows_ = 1;
  uint64_t joined_rows_ = 1;  // so many short rows are one block
  bool whole_rows_ = false;   // fused, and all elements are read and written in place
};

// The chain as what follows an operator whose output is input `value` of the chain. The inputs of
// both are those of the operator, then the chain's others. Null if it cannot be computed in place.
std::unique_ptr<const CpuFollower> MakeChainFollower(Chain chain, size_t value,
                                                     size_t operator_inputs);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_CHAIN_RANGES_H_
