#include "server/execution/execution_progress.h"

namespace opmill {

absl::Duration ExecutionProgress::stalled(absl::Time now) const {
  const bool waits = stage_ == Stage::kUploading && upload_.awaits_chunks();
  return waits ? now - received_at_ : absl::ZeroDuration();
}

ExecutionProgress::Report ExecutionProgress::report(absl::Time now) const {
  Report report = report_;
  report.total = now - report.begun_at;
  report.input_bytes = upload_.received();
  if (stage_ == Stage::kStreaming) report.times.download = now - report.computed_at;
  return report;
}

ExecutionProgress::Received ExecutionProgress::Receive(const IncomingChunk& chunk, absl::Time now) {
  if (stage_ != Stage::kUploading) return Received::kMore;
  upload_.Add(chunk);
  received_at_ = now;
  if (!upload_.complete()) return Received::kMore;
  stage_ = Stage::kQueued;
  report_.uploaded_at = now;
  report_.times.upload = now - report_.begun_at;
  return prepared_ ? Received::kEnqueue : Received::kComplete;
}

bool ExecutionProgress::Prepare(bool was_cached, absl::Duration compile, absl::Time now) {
  if (ended()) return false;
  prepared_ = true;
  report_.was_cached = was_cached;
  if (!was_cached) {
    report_.times.compile = compile;
    report_.compiled_at = now;
  }
  return stage_ == Stage::kQueued;
}

bool ExecutionProgress::Enqueue(absl::Time now) {
  if (stage_ != Stage::kQueued) return false;
  ready_at_ = now;
  return true;
}

bool ExecutionProgress::Submit(absl::Time now) {
  if (stage_ != Stage::kQueued) return false;
  stage_ = Stage::kRunning;
  report_.running_at = now;
  report_.times.queue = now - ready_at_;
  return true;
}

bool ExecutionProgress::Compute(const RunStatistics& run, absl::Time now) {
  if (stage_ != Stage::kRunning) return false;
  stage_ = Stage::kStreaming;
  report_.computed_at = now;
  report_.running_at += run.queued;
  report_.times.queue += run.queued;
  report_.times.compute = run.executed;
  report_.batch_size = run.batch_size;
  return true;
}

std::optional<Stage> ExecutionProgress::End(const absl::Status& status, absl::Time now) {
  if (ended()) return std::nullopt;
  const Stage stage = stage_;
  if (stage == Stage::kStreaming) report_.times.download = now - report_.computed_at;
  stage_ = Stage::kEnded;
  status_ = status;
  return stage;
}

}  // namespace opmill
