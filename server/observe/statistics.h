// Counts what the server has done, per operator, and what it is doing. GetStatistics and the
// metrics read only these counters.
#ifndef OPMILL_SERVER_OBSERVE_STATISTICS_H_
#define OPMILL_SERVER_OBSERVE_STATISTICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/base/steady_time.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "server/observe/histogram.h"
#include "server/observe/recent_errors.h"

namespace opmill {

// The stage of an execution. It only moves forward.
enum class Stage : uint32_t { kUploading, kQueued, kRunning, kStreaming, kEnded };
inline constexpr size_t kOpenStages = 4;

struct StageTimes {
  absl::Duration upload;
  absl::Duration compile;
  absl::Duration queue;
  absl::Duration compute;
  absl::Duration download;
};

// The RPCs that refuse requests beyond a limit.
inline constexpr std::array<absl::string_view, 6> kRefusingRpcs = {
    "CompileOperator", "Execute",    "ExecuteStream",
    "ExplainModel",    "ModelInfer", "ModelStreamInfer"};

struct CallerCounters;

// The end of an execution whose program was valid.
struct ExecutionEnd {
  const OperatorDesc* desc = nullptr;  // null: of a model
  absl::Status status;
  StageTimes times;
  absl::Duration total;
  uint32_t batch_size = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t work_bytes = 0;           // that the device has read and written
  CallerCounters* caller = nullptr;  // null if the caller is not known
};

inline constexpr size_t kStatusCodes = 17;
using StatusCounts = std::array<std::atomic<uint64_t>, kStatusCodes>;

// In nanoseconds, from the run of a small kernel to the upload of gigabytes.
inline constexpr std::array<uint64_t, 16> kDurationBounds = {
    100'000,       250'000,       500'000,        1'000'000,     2'500'000,   5'000'000,
    10'000'000,    25'000'000,    50'000'000,     100'000'000,   250'000'000, 500'000'000,
    1'000'000'000, 2'500'000'000, 10'000'000'000, 60'000'000'000};
inline constexpr std::array<uint64_t, 9> kBatchBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256};

using DurationHistogram = Histogram<kDurationBounds>;
using BatchHistogram = Histogram<kBatchBounds>;

struct OperatorStatistics {
  StatusCounts ends = {};  // per status code
  std::atomic<uint64_t> input_bytes = 0;
  std::atomic<uint64_t> output_bytes = 0;
  // Of executions that succeeded.
  DurationHistogram upload;
  DurationHistogram compile;
  DurationHistogram queue;
  DurationHistogram compute;
  DurationHistogram download;
  DurationHistogram total;
  BatchHistogram batch_size;

  uint64_t succeeded() const { return ends[0]; }
  uint64_t cancelled() const;  // by the caller, its deadline or its disconnection
  uint64_t failed() const;     // all others
};

// The counters of one caller, named by its token or certificate. "address" counts all callers
// without either, "other" all whose names exceed kMostCallerNames.
struct CallerCounters {
  explicit CallerCounters(absl::string_view its_name) : name(its_name) {}

  const std::string name;
  StatusCounts ends = {};
  // These count executions that succeeded.
  std::atomic<uint64_t> work_bytes = 0;
  DurationHistogram queue;
  DurationHistogram compute;

  uint64_t succeeded() const { return ends[0]; }
  uint64_t cancelled() const;
  uint64_t failed() const;
};

// Thread-safe.
class Statistics {
 public:
  static constexpr size_t kMostCallerNames = 64;
  static constexpr absl::string_view kModels = "model";

  void AddEnd(const ExecutionEnd& end);
  // Counts a request without a valid descriptor.
  void AddRefusal(const absl::Status& status);
  // The time from the arrival of a request on one of kRefusingRpcs to its refusal.
  void AddRefusalTime(absl::string_view rpc, absl::Duration duration);

  // The counters of a caller; `name` is empty if it has none. The reference stays valid.
  CallerCounters& OfCaller(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // All of them, "address" and "other" first.
  std::vector<const CallerCounters*> callers() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Those of executions and of requests that were refused.
  RecentErrors& recent_errors() { return recent_errors_; }
  const RecentErrors& recent_errors() const { return recent_errors_; }

  void Enter(Stage stage) { ++in_stage_[static_cast<size_t>(stage)]; }
  void Leave(Stage stage) { --in_stage_[static_cast<size_t>(stage)]; }

  // In the order of Operators(), then kModels: of all models that are no operators.
  const std::vector<OperatorStatistics>& operators() const { return operators_; }
  const StatusCounts& refusals() const { return refusals_; }
  // In the order of kRefusingRpcs.
  const std::array<DurationHistogram, kRefusingRpcs.size()>& refusal_times() const {
    return refusal_times_;
  }
  uint64_t in_stage(Stage stage) const { return in_stage_[static_cast<size_t>(stage)]; }
  absl::Time started_at() const { return started_at_; }  // the time of day
  absl::Duration uptime() const { return SteadyNow() - started_; }

 private:
  const absl::Time started_at_ = absl::Now();
  const absl::Time started_ = SteadyNow();
  std::array<std::atomic<uint64_t>, kOpenStages> in_stage_ = {};
  StatusCounts refusals_ = {};
  std::array<DurationHistogram, kRefusingRpcs.size()> refusal_times_;
  std::vector<OperatorStatistics> operators_ =
      std::vector<OperatorStatistics>(Operators().size() + 1);
  RecentErrors recent_errors_;
  CallerCounters addresses_{"address"};
  CallerCounters others_{"other"};
  mutable absl::Mutex mutex_;
  std::list<CallerCounters> named_ ABSL_GUARDED_BY(mutex_);  // by the holders of a name
};

uint64_t SumOf(const StatusCounts& counts);

}  // namespace opmill

#endif  // OPMILL_SERVER_OBSERVE_STATISTICS_H_
