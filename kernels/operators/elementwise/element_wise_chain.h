// A chain of element-wise operations that is computed in one walk over memory.
#ifndef OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_CHAIN_H_
#define OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_CHAIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/operator_limits.h"
#include "kernels/operators/elementwise/element_wise.h"

namespace opmill {

inline constexpr size_t kMaxChainInputs = kMaxInputs;
inline constexpr size_t kMaxChainParameters = 16;

struct ChainStep {
  ElementWiseOp op = ElementWiseOp::kIdentity;
  DataType type = DataType::kFloat32;  // of the result
  // Each is an input of the chain, or after these the result of an earlier step.
  std::vector<uint32_t> operands;
  // One for each attribute: a number as bits of `type`, or of FLOAT32 for floats, or a choice.
  std::vector<uint64_t> parameters;

  friend bool operator==(const ChainStep&, const ChainStep&) = default;
};

// The result of the last step is the output. All tensors have the output's sizes; a stride of 0
// broadcasts.
struct Chain {
  std::vector<TensorDesc> inputs;
  TensorDesc output;
  std::vector<ChainStep> steps;

  // The type of an operand.
  DataType TypeOf(uint32_t operand) const {
    return operand < inputs.size() ? inputs[operand].data_type
                                   : steps[operand - inputs.size()].type;
  }
};

// The chain of a validated descriptor: one step, or those of a chain's descriptor.
Chain ChainOf(const OperatorDesc& validated);

// The descriptor of a chain, which devices compile like that of an operator. No request can name
// it. InvalidArgument if the chain has more than its limits, or an operation does not take the
// types of its operands.
absl::StatusOr<OperatorDesc> DescribeChain(const Chain& chain);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_ELEMENTWISE_ELEMENT_WISE_CHAIN_H_
