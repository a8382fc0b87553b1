// The state machine of one execution, without locks, clock or device. The executor reports events
// to it, and the return values say what to do next.
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

// Uploading -> queued -> running -> streaming; each stage may also go to ended. Events after the
// end have no effect.
class ExecutionProgress {
 public:
  struct Report {
    StageTimes times;
    absl::Duration total;      // from the begin
    uint64_t input_bytes = 0;  // that have come
    bool was_cached = false;
    uint32_t batch_size = 0;
    // InfinitePast: not yet, or not at all.
    absl::Time begun_at;
    absl::Time uploaded_at = absl::InfinitePast();
    absl::Time compiled_at = absl::InfinitePast();  // unless it was cached
    absl::Time running_at = absl::InfinitePast();
    absl::Time computed_at = absl::InfinitePast();
  };
  enum class Received {
    kMore,      // more input is expected
    kComplete,  // all input has arrived; the operator is being compiled
    kEnqueue,   // input and operator are ready: enqueue it
  };

  ExecutionProgress(const Program& program, absl::Time begun_at,
                    absl::Span<const InputSource> sources = {})
      : received_at_(begun_at), upload_(program, sources) {
    report_.begun_at = begun_at;
  }

  Stage stage() const { return stage_; }
  bool ended() const { return stage_ == Stage::kEnded; }
  // OK until the execution ends, and after a successful end.
  const absl::Status& status() const { return status_; }
  const Upload& upload() const { return upload_; }
  // How long it has waited for its caller to send input; zero if it does not.
  absl::Duration stalled(absl::Time now) const;
  // The report as of `now`.
  Report report(absl::Time now) const;

  // The bytes of `chunk`, which passed Upload::Check, have been copied.
  Received Receive(const IncomingChunk& chunk, absl::Time now);
  // The operator has been compiled, or was at the begin: then `now` does not matter. Returns true
  // if the input is complete too, so that the execution can be enqueued.
  bool Prepare(bool was_cached, absl::Duration compile, absl::Time now);
  // The execution starts to wait for the device. Enqueue, Submit and Compute return false if it has
  // ended.
  bool Enqueue(absl::Time now);
  bool Submit(absl::Time now);
  bool Compute(const RunStatistics& run, absl::Time now);
  // Returns the stage that the execution was in, or nullopt if it had already ended.
  std::optional<Stage> End(const absl::Status& status, absl::Time now);

 private:
  Stage stage_ = Stage::kUploading;
  absl::Status status_;
  absl::Time received_at_;  // when the last bytes arrived
  absl::Time ready_at_;     // when it became ready for the device
  bool prepared_ = false;
  Upload upload_;
  Report report_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_EXECUTION_PROGRESS_H_
