#include "server/observe/statistics.h"

#include <algorithm>

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

}  // namespace

uint64_t OperatorStatistics::cancelled() const {
  return CountOf(ends, absl::StatusCode::kCancelled) +
         CountOf(ends, absl::StatusCode::kDeadlineExceeded);
}

uint64_t OperatorStatistics::failed() const {
  const uint64_t known = succeeded() + cancelled();
  return std::max(SumOf(ends), known) - known;
}

uint64_t SumOf(const StatusCounts& counts) {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& count : counts) sum += count;
  return sum;
}

void Statistics::AddEnd(const ExecutionEnd& end) {
  OperatorStatistics& of = operators_[OperatorIndex(end.desc)];
  CountOf(of.ends, end.status.code()).fetch_add(1, kRelaxed);
  of.input_bytes.fetch_add(end.input_bytes, kRelaxed);
  of.output_bytes.fetch_add(end.output_bytes, kRelaxed);
  if (!end.status.ok()) return;
  Add(of.upload, end.times.upload);
  Add(of.compile, end.times.compile);
  Add(of.queue, end.times.queue);
  Add(of.compute, end.times.compute);
  Add(of.download, end.times.download);
  Add(of.total, end.total);
  of.batch_size.Add(end.batch_size);
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
