#include "server/execution/tensor_buffers.h"

#include <algorithm>
#include <numeric>

#include "absl/types/span.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

absl::Status Take(MemoryBudget& budget, absl::Span<const uint64_t> sizes,
                  const std::shared_ptr<Holding>& holding, uint64_t up_to,
                  std::vector<std::shared_ptr<BudgetedBuffer>>& buffers) {
  for (const uint64_t size_bytes : sizes) {
    buffers.push_back(std::make_shared<BudgetedBuffer>());
    ASSIGN_OR_RETURN(buffers.back()->share, budget.Take(size_bytes, holding, up_to));
  }
  return absl::OkStatus();
}

std::shared_ptr<Buffer> WithItsShare(const std::shared_ptr<BudgetedBuffer>& buffer) {
  return std::shared_ptr<Buffer>(buffer, buffer->buffer.get());
}

}  // namespace

std::vector<TensorDesc> TensorsOf(const Program& program, ValueKind kind) {
  const auto is_wanted = [kind](const ProgramValue& value) { return value.kind == kind; };
  std::vector<TensorDesc> tensors;
  tensors.reserve(
      static_cast<size_t>(std::count_if(program.values.begin(), program.values.end(), is_wanted)));
  for (const ProgramValue& value : program.values) {
    if (is_wanted(value)) tensors.push_back(value.tensor);
  }
  return tensors;
}

BufferSizes BufferSizes::Of(const Program& program, uint64_t incremental_bytes) {
  BufferSizes sizes = {.inputs = RequiredBytes(program, ValueKind::kInput),
                       .outputs = RequiredBytes(program, ValueKind::kOutput)};
  for (const std::vector<uint64_t>* const tensors : {&sizes.inputs, &sizes.outputs}) {
    for (const uint64_t tensor : *tensors) {
      sizes.largest_tensor = std::max(sizes.largest_tensor, tensor);
    }
  }
  if (incremental_bytes > 0) {
    sizes.inputs = {incremental_bytes};
    sizes.is_incremental = true;
  }
  return sizes;
}

uint64_t BufferSizes::total() const {
  return std::accumulate(inputs.begin(), inputs.end(),
                         std::accumulate(outputs.begin(), outputs.end(), uint64_t{0}));
}

absl::StatusOr<TensorBuffers> TensorBuffers::Reserve(MemoryBudget& budget, const BufferSizes& sizes,
                                                     const std::shared_ptr<Holding>& holding,
                                                     bool has_others) {
  const uint64_t up_to = budget.shared().LimitFor(*holding, sizes.total(), has_others);
  TensorBuffers buffers;
  RETURN_IF_ERROR(Take(budget, sizes.inputs, holding, up_to, buffers.inputs_));
  RETURN_IF_ERROR(Take(budget, sizes.outputs, holding, up_to, buffers.outputs_));
  return buffers;
}

absl::Status TensorBuffers::AllocateInputs(Device& device, const BufferSizes& sizes) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (sizes.inputs[i] == 0) continue;
    ASSIGN_OR_RETURN(inputs_[i]->buffer, device.Allocate(sizes.inputs[i], Residency::kUpload));
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
