#include "server/api/result_stream.h"

#include <algorithm>

#include "proto/duration.h"
#include "server/api/model_messages.h"
#include "server/api/request_decoder.h"

namespace opmill {
namespace {

// Copying a small chunk is cheaper than holding a reference to its buffer.
constexpr uint64_t kCopyBelow = 1024;

}  // namespace

grpc::Slice SliceOf(const std::shared_ptr<BudgetedBuffer>& output, uint64_t offset,
                    uint64_t bytes) {
  std::byte* const data = output->buffer->bytes().data() + offset;
  if (bytes < kCopyBelow) return grpc::Slice(data, static_cast<size_t>(bytes));
  return grpc::Slice(
      data, static_cast<size_t>(bytes),
      [](void* holder) { delete static_cast<std::shared_ptr<BudgetedBuffer>*>(holder); },
      new std::shared_ptr<BudgetedBuffer>(output));
}

std::optional<std::vector<OutgoingChunk>> ResultStream::NextChunks() {
  std::vector<OutgoingChunk> chunks;
  uint64_t room = max_chunk_bytes_;
  while (!done() && room > 0) {
    if (execution_->request().WritingOf(next_.output) != nullptr) {
      ++next_.output;
      continue;
    }
    const std::shared_ptr<BudgetedBuffer> output = execution_->output(next_.output);
    if (output == nullptr) return std::nullopt;
    const uint64_t size = execution_->output_bytes()[next_.output];
    const uint64_t bytes = std::min(room, size - next_.offset);
    chunks.push_back({.tensor_index = static_cast<uint32_t>(next_.output),
                      .offset = next_.offset,
                      .data = SliceOf(output, next_.offset, bytes)});
    room -= bytes;
    next_.offset += bytes;
    if (next_.offset == size) {
      ++next_.output;
      next_.offset = 0;
    }
  }
  return chunks;
}

void ResultStream::EncodeStarted(v1::ExecutionStarted& to) {
  next_.started = true;
  const std::shared_ptr<const RequestedModel>& model = execution_->request().model;
  if (model == nullptr) {
    for (const TensorDesc& output : execution_->outputs()) EncodeTensor(output, *to.add_outputs());
  } else {
    EncodeOutputs(*model, execution_->outputs(), to);
  }
  for (const uint64_t bytes : execution_->output_bytes()) to.add_output_bytes(bytes);
}

void EncodeStatistics(const Execution& execution, v1::ExecutionStatistics& to) {
  const Execution::Report report = execution.report();
  if (const auto& model = execution.request().model; model != nullptr) {
    model->model->statistics->AddSuccess(report.times, report.total, execution.request().rows());
  }
  EncodeDuration(report.times.upload, *to.mutable_upload());
  EncodeDuration(report.times.compile, *to.mutable_compile());
  EncodeDuration(report.times.queue, *to.mutable_queue());
  EncodeDuration(report.times.compute, *to.mutable_compute());
  EncodeDuration(report.times.download, *to.mutable_download());
  to.set_was_cached(report.was_cached);
  to.set_batch_size(report.batch_size);
  for (const KeptOutput& kept : execution.request().kept) {
    to.add_generations(kept.writing->generation());
    to.add_rows(kept.writing->rows());
    to.add_capacity_rows(kept.writing->capacity_rows());
  }
}

}  // namespace opmill
