#include "kernels/d3d12/queue/batch_picker.h"

#include <utility>

namespace opmill {
namespace {

uint64_t WeightOf(const PlannedRun& run) { return 1 + run.input_bytes / kBytesLikeARun; }

}  // namespace

void BatchPicker::OnQueued(std::shared_ptr<PlannedRun> run) {
  queued_weight_ += WeightOf(*run);
  queued_.push_back(std::move(run));
  if (run_is_under_way()) is_blocked_ = false;
}

void BatchPicker::OnMemory(absl::Status status) {
  Offer offer = *std::exchange(offer_, std::nullopt);
  offer.part.run->has_memory = status.ok();
  Settle(std::move(offer), std::move(status));
}

void BatchPicker::OnCompleted(const Batch& batch) {
  --frames_in_use_;
  if (batch.is_cut()) --cut_batches_in_flight_;
  ++completions_;
  is_blocked_ = false;
}

void BatchPicker::OnNotSubmitted(const absl::Status& status, Batch& batch) {
  --frames_in_use_;
  if (batch.is_cut()) --cut_batches_in_flight_;
  batch.has_frame = false;
  for (const RunPart& part : batch.parts) {
    part.run->status = status;
    if (part.is_last()) continue;
    batch.ended_runs.push_back(part.run);
    candidates_.pop_front();
  }
}

bool BatchPicker::is_due() const {
  if (is_stopping_ || is_picking_) return true;
  const bool has_runs =
      !candidates_.empty() || queued_weight_ >= (frames_in_use_ > 0 ? kWorthwhileRuns : 1);
  return has_runs && frames_in_use_ < frames_ && !is_blocked_;
}

BatchPicker::Decision BatchPicker::Pick(const absl::Status& device) {
  if (!is_picking_) {
    candidates_.insert(candidates_.end(), std::make_move_iterator(queued_.begin()),
                       std::make_move_iterator(queued_.end()));
    queued_.clear();
    queued_weight_ = 0;
    if (is_stopping_) return {.batch = Close()};
    if (Batch abandoned = TakeAbandoned(); !abandoned.is_empty()) {
      return {.batch = std::move(abandoned)};
    }
    Begin();
  }
  if (std::shared_ptr<PlannedRun> run = TakeTurns(device)) return {.needs_memory = std::move(run)};
  return Finish();
}

Batch BatchPicker::Close() {
  Batch batch;
  for (std::shared_ptr<PlannedRun>& run : candidates_) {
    run->status.Update(absl::UnavailableError("The device is closing."));
    batch.ended_runs.push_back(std::move(run));
  }
  candidates_.clear();
  is_closed_ = true;
  return batch;
}

// Their batch ends when their parts in flight have, and takes a frame until then: the device does
// not count as idle, and refuses no run for want of memory, before it has given back theirs.
Batch BatchPicker::TakeAbandoned() {
  Batch batch;
  std::erase_if(candidates_, [&batch](const std::shared_ptr<PlannedRun>& run) {
    if (!run->abandoned.stop_requested()) return false;
    run->status.Update(absl::CancelledError("The run was abandoned."));
    batch.ended_runs.push_back(run);
    return true;
  });
  if (!batch.is_empty()) {
    batch.has_frame = true;
    ++frames_in_use_;
  }
  return batch;
}

void BatchPicker::Begin() {
  is_picking_ = true;
  room_ = {.dispatches = kMaxBatchDispatches,
           .more_reads = kMaxBatchMoreReads,
           .seconds = kBatchSeconds};
  device_is_idle_ = frames_in_use_ == 0;
  may_cut_ = cut_batches_in_flight_ < kMaxCutBatches;
  completions_before_ = completions_;
  is_full_ = false;
  first_ = run_is_under_way() && (others_are_next_ || !may_cut_) ? 1 : 0;
}

// Runs as they come; while a long one is under way, the others and parts of that one alternate.
// Returns a run that needs memory, or null when the batch is complete.
std::shared_ptr<PlannedRun> BatchPicker::TakeTurns(const absl::Status& device) {
  if (first_ > 0) {
    if (std::shared_ptr<PlannedRun> run = TakeRuns(device)) return run;
    others_are_next_ = false;
    if (!batch_.is_empty() || !may_cut_) return nullptr;
    first_ = 0;
    is_full_ = false;
  }
  if (std::shared_ptr<PlannedRun> run = TakeRuns(device)) return run;
  others_are_next_ = batch_.is_cut();
  return nullptr;
}

std::shared_ptr<PlannedRun> BatchPicker::TakeRuns(const absl::Status& device) {
  while (!is_full_ && candidates_.size() > first_ && batch_.parts.size() < max_batch_runs_) {
    const std::shared_ptr<PlannedRun> run = candidates_[first_];
    absl::Status status = run->status;
    status.Update(device);
    if (!status.ok()) {
      Settle({.part = {.run = run}}, std::move(status));
      continue;
    }
    std::optional<Offer> offer = MakeOffer(run);
    if (!offer.has_value()) {
      is_full_ = true;
    } else if (run->has_memory) {
      Settle(*std::move(offer), absl::OkStatus());
    } else {
      offer_ = std::move(offer);
      return run;
    }
  }
  return nullptr;
}

// The whole run if it fits, or a part of one that is too long for any submission. Nothing when it
// has to wait.
std::optional<BatchPicker::Offer> BatchPicker::MakeOffer(
    const std::shared_ptr<PlannedRun>& run) const {
  if (run->goes_alone && !batch_.parts.empty()) return std::nullopt;
  Offer offer = {.part = {.run = run, .begin = run->next}, .room = room_};
  RunPart& part = offer.part;
  part.end = Advance(*run->plan, *run->pace, part.begin, offer.room);
  if (!part.is_last()) {
    if (first_ > 0 || !may_cut_ || !batch_.parts.empty()) return std::nullopt;
    const bool is_measured = run->pace->IsMeasured(*run->plan, part.begin, part.end);
    // A kernel is measured alone: a part with several would spread its time over all of them.
    offer.room = {.dispatches = is_measured ? room_.dispatches : 1,
                  .more_reads = room_.more_reads,
                  .seconds = is_measured ? kPartSeconds : kFirstPartSeconds};
    part.end = Advance(*run->plan, *run->pace, part.begin, offer.room);
  }
  return offer;
}

// Adds the run that is next to the batch, ends it, or leaves it where it is.
void BatchPicker::Settle(Offer offer, absl::Status status) {
  const std::shared_ptr<PlannedRun> run = offer.part.run;
  const bool is_alone = device_is_idle_ && first_ == 0 && batch_.parts.empty();
  if (absl::IsResourceExhausted(status) && run->status.ok() && !is_alone) {
    is_full_ = true;
    return;
  }
  bool is_ended = true;
  if (status.ok()) {
    run->next = offer.part.end;
    room_ = offer.room;
    is_ended = offer.part.is_last();
    is_full_ = !is_ended || run->goes_alone;
    batch_.parts.push_back(std::move(offer.part));
  } else {
    run->status = std::move(status);
  }
  if (!is_ended) return;
  batch_.ended_runs.push_back(run);
  candidates_.erase(candidates_.begin() + static_cast<ptrdiff_t>(first_));
}

BatchPicker::Decision BatchPicker::Finish() {
  is_picking_ = false;
  Decision decision = {.batch = std::exchange(batch_, {})};
  Batch& batch = decision.batch;
  if (batch.is_empty()) {
    // What may change that may have come since; then there is nothing to wait for.
    is_blocked_ = completions_ == completions_before_ && !(run_is_under_way() && !queued_.empty());
  }
  if (!batch.parts.empty()) {
    batch.has_frame = true;
    ++frames_in_use_;
    if (batch.is_cut()) ++cut_batches_in_flight_;
  }
  return decision;
}

}  // namespace opmill
