#include "server/execution/tensor_buffers.h"

#include "kernels/base/errors.h"

namespace opmill {
namespace {

absl::Status Take(MemoryBudget& budget, const std::vector<TensorDesc>& tensors,
                  const std::shared_ptr<Holding>& holding, uint64_t up_to,
                  std::vector<std::shared_ptr<BudgetedBuffer>>& buffers) {
  for (const TensorDesc& tensor : tensors) {
    buffers.push_back(std::make_shared<BudgetedBuffer>());
    ASSIGN_OR_RETURN(buffers.back()->share, budget.Take(RequiredBytes(tensor), holding, up_to));
  }
  return absl::OkStatus();
}

std::shared_ptr<HostBuffer> WithItsShare(const std::shared_ptr<BudgetedBuffer>& buffer) {
  return std::shared_ptr<HostBuffer>(buffer, buffer->buffer.get());
}

}  // namespace

absl::StatusOr<TensorBuffers> TensorBuffers::Reserve(MemoryBudget& budget,
                                                     const std::vector<TensorDesc>& inputs,
                                                     const std::vector<TensorDesc>& outputs,
                                                     const std::shared_ptr<Holding>& holding,
                                                     bool has_others) {
  uint64_t bytes = 0;
  for (const TensorDesc& input : inputs) bytes += RequiredBytes(input);
  for (const TensorDesc& output : outputs) bytes += RequiredBytes(output);
  const uint64_t up_to = budget.shared().LimitFor(*holding, bytes, has_others);
  TensorBuffers buffers;
  RETURN_IF_ERROR(Take(budget, inputs, holding, up_to, buffers.inputs_));
  RETURN_IF_ERROR(Take(budget, outputs, holding, up_to, buffers.outputs_));
  return buffers;
}

absl::Status TensorBuffers::AllocateInputs(Device& device, const std::vector<TensorDesc>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSIGN_OR_RETURN(inputs_[i]->buffer,
                     device.Allocate(RequiredBytes(inputs[i]), BufferUse::kInput));
  }
  return absl::OkStatus();
}

Bindings TensorBuffers::Bind() {
  Bindings bindings;
  for (const auto& input : inputs_) bindings.inputs.push_back(WithItsShare(input));
  for (const auto& output : outputs_) bindings.outputs.push_back(WithItsShare(output));
  inputs_.clear();
  return bindings;
}

}  // namespace opmill
