// Builds the program of an operator from reductions, element-wise chains and other operators.
#ifndef OPMILL_KERNELS_OPERATORS_LOWERING_H_
#define OPMILL_KERNELS_OPERATORS_LOWERING_H_

#include <cstdint>
#include <vector>

#include "kernels/descriptor/operator_desc.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/program/program.h"

namespace opmill {

// A value, as a node reads it.
struct Operand {
  uint32_t value = 0;
  TensorDesc tensor;
};

// A step of a chain over FLOAT32. Operands are the inputs of the chain, followed by the results of
// earlier steps.
struct MapStep {
  ElementWiseOp op = ElementWiseOp::kIdentity;
  std::vector<uint32_t> operands;
  std::vector<float> parameters;
};

// Intermediates are packed, and FLOAT32 unless a reduction selects elements of FLOAT16.
class Lowering {
 public:
  // `validated` has one output, and must outlive this object.
  explicit Lowering(const OperatorDesc& validated);

  Operand Input(size_t index) const { return {static_cast<uint32_t>(index), desc_.inputs[index]}; }
  Operand Reduce(ReduceFunction function, const Operand& input, const std::vector<uint32_t>& axes);
  // Of these sizes, to which inputs of size 1 are broadcast. Without steps, the first input.
  Operand Map(const std::vector<uint32_t>& sizes, const std::vector<Operand>& inputs,
              const std::vector<MapStep>& steps);
  // An operator with one input and one output.
  Operand Add(OperatorDesc desc, const Operand& input);
  // The last node, which writes the output.
  Program Return(const std::vector<Operand>& inputs, const std::vector<MapStep>& steps);

 private:
  uint32_t AddIntermediate(const TensorDesc& tensor);
  void AddChain(const std::vector<Operand>& inputs, const std::vector<MapStep>& steps,
                const Operand& output);

  const OperatorDesc& desc_;
  Program program_;
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_LOWERING_H_
