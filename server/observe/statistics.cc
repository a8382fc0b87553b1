#include "server/observe/statistics.h"

#include <algorithm>

#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

std::atomic<uint64_t>& CountOf(StatusCounts& counts, absl::StatusCode code) {
  // Other values count as UNKNOWN, as in gRPC.
  const size_t index = static_cast<size_t>(code);
  return counts[index < kStatusCodes ? index : static_cast<size_t>(absl::StatusCode::kUnknown)];
}

uint64_t CountOf(const StatusCounts& counts, absl::StatusCode code) {
  return counts[static_cast<size_t>(code)];
}

void Add(DurationHistogram& histogram, absl::Duration duration) {
  histogram.Add(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration))));
}

uint64_t CancelledOf(const StatusCounts& ends) {
  return CountOf(ends, absl::StatusCode::kCancelled) +
         CountOf(ends, absl::StatusCode::kDeadlineExceeded);
}

uint64_t FailedOf(const StatusCounts& ends) {
  const uint64_t known = ends[0] + CancelledOf(ends);
  return std::max(SumOf(ends), known) - known;
}

}  // namespace

uint64_t OperatorStatistics::cancelled() const { return CancelledOf(ends); }
uint64_t OperatorStatistics::failed() const { return FailedOf(ends); }
uint64_t CallerCounters::cancelled() const { return CancelledOf(ends); }
uint64_t CallerCounters::failed() const { return FailedOf(ends); }

uint64_t SumOf(const StatusCounts& counts) {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& count : counts) sum += count;
  return sum;
}

void Statistics::AddEnd(const ExecutionEnd& end) {
  OperatorStatistics& of =
      end.desc == nullptr ? operators_.back() : operators_[OperatorIndex(*end.desc)];
  CountOf(of.ends, end.status.code()).fetch_add(1, kRelaxed);
  of.input_bytes.fetch_add(end.input_bytes, kRelaxed);
  of.output_bytes.fetch_add(end.output_bytes, kRelaxed);
  if (end.caller != nullptr) CountOf(end.caller->ends, end.status.code()).fetch_add(1, kRelaxed);
  if (!end.status.ok()) return;
  if (end.caller != nullptr) {
    end.caller->work_bytes.fetch_add(end.work_bytes, kRelaxed);
    Add(end.caller->queue, end.times.queue);
    Add(end.caller->compute, end.times.compute);
  }
  Add(of.upload, end.times.upload);
  Add(of.compile, end.times.compile);
  Add(of.queue, end.times.queue);
  Add(of.compute, end.times.compute);
  Add(of.download, end.times.download);
  Add(of.total, end.total);
  of.batch_size.Add(end.batch_size);
}

CallerCounters& Statistics::OfCaller(absl::string_view name) {
  // A second caller with one of these names would be the same metric twice.
  if (name.empty() || name == addresses_.name) return addresses_;
  if (name == others_.name) return others_;
  const absl::MutexLock lock(&mutex_);
  for (CallerCounters& caller : named_) {
    if (caller.name == name) return caller;
  }
  return named_.size() < kMostCallerNames ? named_.emplace_back(name) : others_;
}

std::vector<const CallerCounters*> Statistics::callers() const {
  std::vector<const CallerCounters*> callers = {&addresses_, &others_};
  const absl::MutexLock lock(&mutex_);
  for (const CallerCounters& caller : named_) callers.push_back(&caller);
  return callers;
}

void Statistics::AddRefusal(const absl::Status& status) {
  CountOf(refusals_, status.code()).fetch_add(1, kRelaxed);
}

void Statistics::AddRefusalTime(absl::string_view rpc, absl::Duration duration) {
  const auto found = std::find(kRefusingRpcs.begin(), kRefusingRpcs.end(), rpc);
  if (found == kRefusingRpcs.end()) return;
  Add(refusal_times_[static_cast<size_t>(found - kRefusingRpcs.begin())], duration);
}

}  // namespace opmill
