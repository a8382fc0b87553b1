#include "server/execution/execution.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/base/steady_time.h"

namespace opmill {

void RequestOrigin::AddTo(LogLine& line) const {
  line.Add("rpc", rpc).Add("peer", peer);
  if (is_http) line.Add("protocol", "http");
  if (!caller.empty()) line.Add("caller", caller);
  if (!traceparent.empty()) line.Add("traceparent", traceparent);
}

std::vector<TensorDesc> ExecutionRequest::InputTensors() const {
  return op.has_value() ? op->inputs : TensorsOf(*program, ValueKind::kInput);
}

std::vector<TensorDesc> ExecutionRequest::OutputTensors() const {
  return op.has_value() ? OutputsOf(*op) : TensorsOf(*program, ValueKind::kOutput);
}

uint32_t ExecutionRequest::rows() const {
  if (op.has_value()) return op->schema->has_rows() ? op->inputs[0].sizes[0] : 1;
  return model == nullptr ? 1 : model->rows();
}

TensorStore::Writing* ExecutionRequest::WritingOf(size_t output) const {
  for (const KeptOutput& each : kept) {
    if (each.output == output) return each.writing.get();
  }
  return nullptr;
}

std::string ExecutionRequest::description() const {
  if (op.has_value()) return ToString(*op);
  if (model == nullptr || model->graph == nullptr) return ToString(*program);
  return absl::StrCat("model ", model->model->name, " version ", model->model->version);
}

Execution::Execution(ExecutionRequest request)
    : request_(std::move(request)),
      inputs_(TensorsOf(*request_.program, ValueKind::kInput)),
      outputs_(TensorsOf(*request_.program, ValueKind::kOutput)),
      progress_(*request_.program, SteadyNow(), request_.sources) {
  needs_no_input_ = progress_.upload().complete();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    output_bytes_.push_back(request_.WritingOf(i) == nullptr ? SpannedBytes(outputs_[i]) : 0);
  }
}

std::shared_ptr<const std::string> Execution::description() const {
  if (request_.desc() != nullptr) {
    const absl::MutexLock lock(&mutex_);
    if (description_ != nullptr) return description_;
  }
  return std::make_shared<const std::string>(request_.description());
}

uint64_t Execution::rounding() const {
  const absl::MutexLock lock(&mutex_);
  return compiled_ == nullptr ? 0 : compiled_->cost().rounding;
}

Execution::ChunkPlace Execution::PlaceOf(const IncomingChunk& chunk) const {
  if (incremental_run_ != nullptr) return {.run = incremental_run_};
  return {.buffer = buffers_.input(chunk.tensor_index),
          .offset = progress_.upload().received(chunk.tensor_index)};
}

void Execution::ChunkPlace::Take(const Payload& data) const {
  if (run == nullptr) {
    data.CopyTo(buffer->buffer->bytes().data() + offset);
  } else {
    data.ForEachPart([this](absl::Span<const std::byte> part) { run->Add(part); });
  }
}

void Execution::BindResident() {
  for (size_t i = 0; i < request_.sources.size(); ++i) {
    if (const auto& resident = request_.sources[i].resident; resident != nullptr) {
      buffers_.SetInput(i, resident->buffer());
    }
  }
  for (const KeptOutput& kept : request_.kept) {
    if (std::shared_ptr<Buffer> buffer = kept.writing->buffer(); buffer != nullptr) {
      buffers_.SetOutput(kept.output, std::move(buffer));
    }
  }
}

uint64_t Execution::MemoryBytes(const ProgramCost& cost) const {
  uint64_t bytes = cost.scratch_bytes;
  for (const TensorDesc& input : inputs_) {
    bytes += std::max(SpannedBytes(input), ElementCount(input) * ElementBytes(input.data_type));
  }
  for (const TensorDesc& output : outputs_) bytes += SpannedBytes(output);
  return bytes;
}

std::shared_ptr<BudgetedBuffer> Execution::output(size_t index) const {
  const absl::MutexLock lock(&mutex_);
  if (progress_.stage() != Stage::kStreaming) return nullptr;
  return buffers_.output(index);
}

}  // namespace opmill
