#include "client/cli/load.h"

#include <algorithm>

#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {

ServerTimes& ServerTimes::operator+=(const ServerTimes& other) {
  upload += other.upload;
  queue += other.queue;
  compute += other.compute;
  download += other.download;
  batch_size += other.batch_size;
  return *this;
}

absl::Duration Quantile(const LoadReport& report, double q) {
  if (report.latencies.empty()) return absl::ZeroDuration();
  const double rank = q * static_cast<double>(report.latencies.size());
  const size_t index = static_cast<size_t>(std::max(0.0, rank - 1e-9));
  return report.latencies[std::min(index, report.latencies.size() - 1)];
}

double CallsPerSecond(const LoadReport& report) {
  const double seconds = absl::ToDoubleSeconds(report.measured);
  return seconds > 0 ? static_cast<double>(report.latencies.size()) / seconds : 0;
}

LoadRun::LoadRun(const LoadPlan& plan, const std::atomic<bool>& interrupted)
    : measure_from_(SteadyNow() + plan.warm_up),
      stop_at_(measure_from_ + plan.duration),
      interrupted_(interrupted),
      running_(plan.concurrency) {}

void LoadRun::Fail(const absl::Status& status) {
  const absl::MutexLock lock(&mutex_);
  failure_.Update(status);
  failed_ = true;
}

void LoadRun::LaneEnded() {
  const absl::MutexLock lock(&mutex_);
  --running_;
}

absl::Status LoadRun::AwaitLanes() {
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
  const absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&ended));
  return failure_;
}

void LoadLane::Begin() {
  begun_ = SteadyNow();
  BeginCall();
}

void LoadLane::AddTo(LoadReport& report) const {
  report.latencies.insert(report.latencies.end(), latencies_.begin(), latencies_.end());
  report.server += server_;
  if (latencies_.empty()) return;
  report.measured = std::max(report.measured, last_end_ - run_.measure_from());
}

bool LoadLane::CallEnded(const absl::Status& status, const ServerTimes& server) {
  const absl::Time now = SteadyNow();
  if (!status.ok()) {
    run_.Fail(status);
  } else if (begun_ >= run_.measure_from()) {
    latencies_.push_back(now - begun_);
    server_ += server;
    last_end_ = now;
  }
  begun_ = now;
  if (run_.ShouldGoOn(now)) return true;
  run_.LaneEnded();
  return false;
}

absl::StatusOr<LoadReport> RunLanes(
    const LoadPlan& plan, const std::atomic<bool>& interrupted,
    const std::function<std::unique_ptr<LoadLane>(LoadRun&)>& make) {
  LoadRun run(plan, interrupted);
  std::vector<std::unique_ptr<LoadLane>> lanes;
  for (uint32_t i = 0; i < plan.concurrency; ++i) {
    lanes.push_back(make(run));
    lanes.back()->Begin();
  }
  RETURN_IF_ERROR(run.AwaitLanes());
  LoadReport report;
  report.concurrency = plan.concurrency;
  for (const std::unique_ptr<LoadLane>& lane : lanes) lane->AddTo(report);
  std::sort(report.latencies.begin(), report.latencies.end());
  return report;
}

}  // namespace opmill
