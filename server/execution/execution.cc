#include "server/execution/execution.h"

#include "kernels/base/steady_time.h"

namespace opmill {

void RequestOrigin::AddTo(LogLine& line) const {
  line.Add("rpc", rpc).Add("peer", peer);
  if (!caller.empty()) line.Add("caller", caller);
  if (!traceparent.empty()) line.Add("traceparent", traceparent);
}

Execution::Execution(ExecutionRequest request, std::vector<TensorDesc> outputs)
    : request_(std::move(request)),
      outputs_(std::move(outputs)),
      progress_(request_.desc, SteadyNow()) {
  for (const TensorDesc& output : outputs_) output_bytes_.push_back(SpannedBytes(output));
}

std::shared_ptr<const std::string> Execution::description() const {
  {
    const absl::MutexLock lock(&mutex_);
    if (description_ != nullptr) return description_;
  }
  return std::make_shared<const std::string>(ToString(desc()));
}

std::shared_ptr<BudgetedBuffer> Execution::output(size_t index) const {
  const absl::MutexLock lock(&mutex_);
  if (progress_.stage() != Stage::kStreaming) return nullptr;
  return buffers_.output(index);
}

}  // namespace opmill
