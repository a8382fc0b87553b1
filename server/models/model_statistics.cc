#include "server/models/model_statistics.h"

#include <algorithm>
#include <cstdint>

#include "absl/time/clock.h"

namespace opmill {
namespace {

void Add(absl::Duration duration, inference::StatisticDuration& to) {
  to.set_count(to.count() + 1);
  to.set_ns(to.ns() +
            static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration))));
}

}  // namespace

void ModelStatistics::AddSuccess(const StageTimes& times, absl::Duration total, uint64_t rows) {
  const absl::MutexLock lock(&mutex_);
  inference::InferStatistics& stats = *counts_.mutable_inference_stats();
  Add(total, *stats.mutable_success());
  Add(times.compile + times.queue, *stats.mutable_queue());
  Add(times.upload, *stats.mutable_compute_input());
  Add(times.compute, *stats.mutable_compute_infer());
  Add(times.download, *stats.mutable_compute_output());
  counts_.set_inference_count(counts_.inference_count() + rows);
  counts_.set_last_inference(static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())));
}

void ModelStatistics::AddExecution(uint64_t rows, absl::Duration compute) {
  const absl::MutexLock lock(&mutex_);
  counts_.set_execution_count(counts_.execution_count() + 1);
  inference::InferBatchStatistics& batch = batches_[rows];
  batch.set_batch_size(rows);
  Add(absl::ZeroDuration(), *batch.mutable_compute_input());
  Add(compute, *batch.mutable_compute_infer());
  Add(absl::ZeroDuration(), *batch.mutable_compute_output());
}

void ModelStatistics::AddFailure(absl::Duration duration) {
  const absl::MutexLock lock(&mutex_);
  Add(duration, *counts_.mutable_inference_stats()->mutable_fail());
}

void ModelStatistics::Encode(inference::ModelStatistics& to) const {
  const absl::MutexLock lock(&mutex_);
  to = counts_;
  for (const auto& [rows, batch] : batches_) *to.add_batch_stats() = batch;
}

}  // namespace opmill
