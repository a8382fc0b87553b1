// Decides what the next submission consists of and when it is due. Events go in, decisions come
// out: no thread, lock, clock or device. The caller serializes the calls.
//
// - Whole runs go in the order in which they were queued, as many as fit into a submission.
// - A run whose steps are measured shares no submission.
// - A run that is too long for one submission is cut into parts. Parts alternate with other runs,
//   and at most kMaxCutBatches of them are in flight.
// - While the device works, small runs wait until they are worth a submission.
// - A run for which there is no memory waits until a submission completes, and fails if the device
//   has nothing to complete.
// - Nothing more of an abandoned run is submitted.
#ifndef OPMILL_KERNELS_D3D12_QUEUE_BATCH_PICKER_H_
#define OPMILL_KERNELS_D3D12_QUEUE_BATCH_PICKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "kernels/d3d12/queue/pacing.h"
#include "kernels/d3d12/queue/planned_run.h"

namespace opmill {

// Dispatches of one submission; longer plans take several.
inline constexpr uint32_t kMaxBatchDispatches = 1024;
// Of these, the ones with more than the first reads, each of which takes another table of the heap.
inline constexpr uint32_t kMaxBatchMoreReads = 48;

// A submission is expensive regardless of its content: on lavapipe it takes some tens of
// microseconds of processor time and wakes several threads. While the device works, small runs
// therefore wait until it is done, or until enough of them have come to justify another submission.
// Long runs do not wait. (64 in flight on a stream: 1.17 times the executions per second;
// docs/notes/transport.md.)
inline constexpr uint64_t kWorthwhileRuns = 32;
inline constexpr uint64_t kBytesLikeARun = uint64_t{32} << 10;

// How long a submission of whole runs may take. Drivers give up on a submission after 2 s.
inline constexpr double kBatchSeconds = 0.1;

// How long a part of a run that does not fit into one submission may take. Other runs wait for two
// parts, and an abandoned run occupies the device for two. A submission costs 0.3 ms on lavapipe,
// so cutting long work has no measurable cost. Half of kBatchSeconds, because a part shares its
// submission with no other run, and on a busy host short runs are measured as long ones.
inline constexpr double kPartSeconds = 0.05;

// The same while a kernel of the part has not been measured. The groups of a plan's first kernel
// may do most of its work.
inline constexpr double kFirstPartSeconds = 0.005;

// Parts in flight: one on the device, and one with which the device continues at once.
inline constexpr uint32_t kMaxCutBatches = 2;

// What goes into one submission; or, without parts, runs that end without one.
struct Batch {
  std::vector<RunPart> parts;
  std::vector<std::shared_ptr<PlannedRun>> ended_runs;  // with this batch, in this order
  bool has_frame = false;  // takes one of the frames until it completes

  bool is_empty() const { return parts.empty() && ended_runs.empty(); }
  bool is_cut() const { return parts.size() == 1 && !parts[0].is_whole(); }
};

class BatchPicker {
 public:
  // One of the two, or neither if there is nothing to do.
  struct Decision {
    std::shared_ptr<PlannedRun> needs_memory;  // to be answered with OnMemory
    Batch batch;  // to be submitted if it has parts; then OnCompleted or OnNotSubmitted
  };

  // `frames`: submissions that may be in flight.
  BatchPicker(uint32_t frames, uint32_t max_batch_runs)
      : frames_(frames), max_batch_runs_(max_batch_runs) {}

  // A run that has failed already ends with the next batch.
  void OnQueued(std::shared_ptr<PlannedRun> run);
  // The run that Pick returned last has its memory, or `status` says why it does not. After
  // ResourceExhausted it is tried again if the device has work to complete.
  void OnMemory(absl::Status status);
  // A batch with a frame has left the device; its frame is free.
  void OnCompleted(const Batch& batch);
  // The last batch that Pick returned could not be submitted: all of its runs end, without a frame.
  void OnNotSubmitted(const absl::Status& status, Batch& batch);
  // The next batch contains all remaining runs, failed.
  void OnStop() { is_stopping_ = true; }

  // Whether Pick has something to do. Cheap: a condition that other threads evaluate.
  bool is_due() const;
  // `device`: OK, or why the device can no longer run anything.
  Decision Pick(const absl::Status& device);
  // Pick has returned the last runs and must not be called again.
  bool is_closed() const { return is_closed_; }

 private:
  // The next run, or part of one, and what it would take.
  struct Offer {
    RunPart part;
    SubmissionRoom room;  // of the batch after it
  };

  Batch Close();
  Batch TakeAbandoned();
  void Begin();
  std::shared_ptr<PlannedRun> TakeTurns(const absl::Status& device);
  std::shared_ptr<PlannedRun> TakeRuns(const absl::Status& device);
  std::optional<Offer> MakeOffer(const std::shared_ptr<PlannedRun>& run) const;
  void Settle(Offer offer, absl::Status status);
  Decision Finish();
  bool run_is_under_way() const {
    return !candidates_.empty() && candidates_.front()->is_under_way();
  }

  const uint32_t frames_;
  const uint32_t max_batch_runs_;

  std::deque<std::shared_ptr<PlannedRun>> queued_;
  uint64_t queued_weight_ = 0;
  std::deque<std::shared_ptr<PlannedRun>> candidates_;  // the first may be under way
  bool others_are_next_ = false;                        // before the run under way
  uint32_t frames_in_use_ = 0;
  uint32_t cut_batches_in_flight_ = 0;
  uint64_t completions_ = 0;
  // No candidate may go until a batch completes: memory is lacking, or enough parts of the run that
  // is under way are in flight. With a run under way, a newly queued run ends this state.
  bool is_blocked_ = false;
  bool is_stopping_ = false;
  bool is_closed_ = false;

  // The batch that is being assembled, kept between Pick and OnMemory.
  bool is_picking_ = false;
  Batch batch_;
  SubmissionRoom room_;
  size_t first_ = 0;  // candidates before it are passed over
  bool is_full_ = false;
  bool device_is_idle_ = false;
  bool may_cut_ = false;
  uint64_t completions_before_ = 0;
  std::optional<Offer> offer_;  // waits for OnMemory
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_QUEUE_BATCH_PICKER_H_
