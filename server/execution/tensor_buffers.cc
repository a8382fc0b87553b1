#include "server/execution/tensor_buffers.h"

#include "kernels/base/errors.h"

namespace opmill {
namespace {

absl::Status Take(MemoryBudget& budget, const std::vector<TensorDesc>& tensors,
                  std::vector<std::shared_ptr<BudgetedBuffer>>& buffers) {
  for (const TensorDesc& tensor : tensors) {
    buffers.push_back(std::make_shared<BudgetedBuffer>());
    ASSIGN_OR_RETURN(buffers.back()->share, budget.Take(RequiredBytes(tensor)));
  }
  return absl::OkStatus();
}

std::shared_ptr<HostBuffer> WithItsShare(const std::shared_ptr<BudgetedBuffer>& buffer) {
  return std::shared_ptr<HostBuffer>(buffer, buffer->buffer.get());
}

}  // namespace

absl::StatusOr<TensorBuffers> TensorBuffers::Reserve(MemoryBudget& budget,
                                                     const std::vector<TensorDesc>& inputs,
                                                     const std::vector<TensorDesc>& outputs) {
  TensorBuffers buffers;
  RETURN_IF_ERROR(Take(budget, inputs, buffers.inputs_));
  RETURN_IF_ERROR(Take(budget, outputs, buffers.outputs_));
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
