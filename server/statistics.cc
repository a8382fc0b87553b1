#include "server/statistics.h"

namespace opmill {

void Statistics::AddEnd(absl::string_view operator_name, const absl::Status& status,
                        const StageTimes& times, uint64_t input_bytes, uint64_t output_bytes) {
  const std::lock_guard lock(mutex_);
  OperatorTotals& totals = totals_[std::string(operator_name)];
  if (status.ok()) {
    ++totals.succeeded;
  } else if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) {
    ++totals.cancelled;
  } else {
    ++totals.failed;
  }
  totals.input_bytes += input_bytes;
  totals.output_bytes += output_bytes;
  totals.times.upload += times.upload;
  totals.times.compile += times.compile;
  totals.times.queue += times.queue;
  totals.times.compute += times.compute;
  totals.times.download += times.download;
}

std::map<std::string, OperatorTotals> Statistics::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace opmill
