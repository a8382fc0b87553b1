#include "server/execution.h"

namespace opmill {

Execution::Execution(ExecutionRequest request, const TensorDesc& input,
                     std::vector<TensorDesc> outputs)
    : request_(std::move(request)),
      input_bytes_(SpannedBytes(input)),
      input_buffer_bytes_(RequiredBytes(input)),
      outputs_(std::move(outputs)) {
  for (const TensorDesc& output : outputs_) output_bytes_.push_back(SpannedBytes(output));
}

std::shared_ptr<BudgetedBuffer> Execution::output(size_t index) const {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::kStreaming) return nullptr;
  return outputs_bound_[index];
}

Execution::Report Execution::report() const {
  const std::lock_guard lock(mutex_);
  Report report = report_;
  if (stage_ == Stage::kStreaming) report.times.download = absl::Now() - computed_at_;
  return report;
}

}  // namespace opmill
