// Repeated, concurrent calls: each end of a call begins the next, until the time is over.
#ifndef OPMILL_CLIENT_CLI_LOAD_H_
#define OPMILL_CLIENT_CLI_LOAD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opmill {

struct LoadPlan {
  uint32_t concurrency = 1;
  absl::Duration warm_up = absl::ZeroDuration();  // not measured
  absl::Duration duration = absl::Seconds(1);
};

// What the server says of one call; of several, the sum.
struct ServerTimes {
  absl::Duration upload;
  absl::Duration queue;
  absl::Duration compute;
  absl::Duration download;
  uint64_t batch_size = 0;  // executions in the same submission

  ServerTimes& operator+=(const ServerTimes& other);
};

struct LoadReport {
  uint32_t concurrency = 0;
  absl::Duration measured;                // until the last end
  std::vector<absl::Duration> latencies;  // ascending
  ServerTimes server;
  absl::Duration first_call;    // alone; includes compilation if the operator was not cached
  uint64_t bytes_per_call = 0;  // inputs and outputs
};

// The q-th part of the latencies is not longer. Zero if there are none.
absl::Duration Quantile(const LoadReport& report, double q);
double CallsPerSecond(const LoadReport& report);

// Shared by the lanes of a run. Thread-safe.
class LoadRun {
 public:
  LoadRun(const LoadPlan& plan, const std::atomic<bool>& interrupted);

  absl::Time measure_from() const { return measure_from_; }
  bool ShouldGoOn(absl::Time now) const {
    return now < stop_at_ && !failed_.load() && !interrupted_.load();
  }
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void LaneEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the end of all lanes. Returns the first error.
  absl::Status AwaitLanes() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const absl::Time measure_from_;
  const absl::Time stop_at_;
  const std::atomic<bool>& interrupted_;
  std::atomic<bool> failed_{false};
  absl::Mutex mutex_;
  uint32_t running_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

// Makes one call after the other. Lanes measure separately, so that they do not wait for each
// other.
class LoadLane {
 public:
  explicit LoadLane(LoadRun& run) : run_(run) {}
  virtual ~LoadLane() = default;

  void Begin();
  void AddTo(LoadReport& report) const;  // after the end of the lane

 protected:
  // Begins a call, whose end leads to CallEnded.
  virtual void BeginCall() = 0;
  // If it returns true, the next call has to begin at once; after false, the lane may be gone.
  bool CallEnded(const absl::Status& status, const ServerTimes& server);
  void BeginNext(const absl::Status& status, const ServerTimes& server) {
    if (CallEnded(status, server)) BeginCall();
  }

 private:
  LoadRun& run_;
  absl::Time begun_;
  absl::Time last_end_;
  std::vector<absl::Duration> latencies_;
  ServerTimes server_;
};

// Runs a lane of `make` for each concurrent call. When `interrupted` becomes true, stops and
// reports what was measured so far. Fails if a call fails.
absl::StatusOr<LoadReport> RunLanes(const LoadPlan& plan, const std::atomic<bool>& interrupted,
                                    const std::function<std::unique_ptr<LoadLane>(LoadRun&)>& make);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_LOAD_H_
