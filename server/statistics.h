// What the server has done, per operator, and what it is doing.
#ifndef OPMILL_SERVER_STATISTICS_H_
#define OPMILL_SERVER_STATISTICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace opmill {

// Where an execution is. It moves forward only.
enum class Stage : uint32_t { kUploading, kQueued, kRunning, kStreaming, kEnded };
inline constexpr size_t kOpenStages = 4;

struct StageTimes {
  absl::Duration upload;
  absl::Duration compile;
  absl::Duration queue;
  absl::Duration compute;
  absl::Duration download;
};

struct OperatorTotals {
  uint64_t succeeded = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  StageTimes times;
};

// Safe to use from many threads.
class Statistics {
 public:
  // The ends of executions that had a lawful descriptor.
  void AddEnd(absl::string_view operator_name, const absl::Status& status, const StageTimes& times,
              uint64_t input_bytes, uint64_t output_bytes);
  // The end of a request that had none, or that there was no room for.
  void AddRefusal() { ++refusals_; }

  void Enter(Stage stage) { ++in_stage_[static_cast<size_t>(stage)]; }
  void Leave(Stage stage) { --in_stage_[static_cast<size_t>(stage)]; }

  std::map<std::string, OperatorTotals> totals() const;
  uint64_t refusals() const { return refusals_; }
  uint64_t in_stage(Stage stage) const { return in_stage_[static_cast<size_t>(stage)]; }
  absl::Duration uptime() const { return absl::Now() - started_; }

 private:
  const absl::Time started_ = absl::Now();
  std::atomic<uint64_t> refusals_ = 0;
  std::array<std::atomic<uint64_t>, kOpenStages> in_stage_ = {};
  mutable std::mutex mutex_;
  std::map<std::string, OperatorTotals> totals_;  // guarded by mutex_
};

}  // namespace opmill

#endif  // OPMILL_SERVER_STATISTICS_H_
