// Where an execution is: a state machine without locks, clock or device. The executor tells it what
// has happened, and it answers what follows.
#ifndef OPMILL_SERVER_EXECUTION_EXECUTION_PROGRESS_H_
#define OPMILL_SERVER_EXECUTION_EXECUTION_PROGRESS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kernels/engine/device.h"
#include "server/execution/upload.h"
#include "server/observe/statistics.h"

namespace opmill {

// Uploading -> queued -> running -> streaming, and from each of them to ended. What happens to an
// execution that has ended changes nothing.
class ExecutionProgress {
 public:
  struct Report {
    StageTimes times;
    absl::Duration total;      // from the begin
    uint64_t input_bytes = 0;  // that have come
    bool was_cached = false;
    uint32_t batch_size = 0;
  };
  enum class Received {
    kMore,      // input is missing
    kComplete,  // all input is there; the operator is being compiled
    kEnqueue,   // both are there
  };

  ExecutionProgress(const OperatorDesc& desc, absl::Time begun_at)
      : begun_at_(begun_at), received_at_(begun_at), upload_(desc) {}

  Stage stage() const { return stage_; }
  bool ended() const { return stage_ == Stage::kEnded; }
  // OK until it ends, and if it ends well.
  const absl::Status& status() const { return status_; }
  const Upload& upload() const { return upload_; }
  // How long it has waited for the next bytes of its input; zero where it waits for none.
  absl::Duration stalled(absl::Time now) const;
  // What is known at `now`.
  Report report(absl::Time now) const;

  // The bytes of a chunk that Upload::Check passed are in their place.
  Received Receive(const IncomingChunk& chunk, absl::Time now);
  // The operator is compiled. True where the input is complete too: enqueue it.
  bool Prepare(bool was_cached, absl::Duration compile);
  // It waits for the device from now on. These three are false where it has ended.
  bool Enqueue(absl::Time now);
  bool Submit(absl::Time now);
  bool Compute(const RunStatistics& run, absl::Time now);
  // The stage in which it was; nothing where it had ended before.
  std::optional<Stage> End(const absl::Status& status, absl::Time now);

 private:
  const absl::Time begun_at_;
  Stage stage_ = Stage::kUploading;
  absl::Status status_;
  absl::Time received_at_;  // the last bytes
  absl::Time ready_at_;     // for the device
  absl::Time computed_at_;
  bool prepared_ = false;
  Upload upload_;
  Report report_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTION_PROGRESS_H_
