// What a submission consists of and when it is due, event by event.
#include "kernels/d3d12/queue/batch_picker.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <stop_token>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kFrames = 3;
constexpr uint32_t kMaxRuns = 64;

enum class Pacing { kMeasured, kUnmeasured };

// Passes of one dispatch with so many groups, all of one kernel, that take so long together.
struct Operator {
  explicit Operator(double seconds, uint32_t groups = 1, size_t passes = 1,
                    Pacing pacing = Pacing::kMeasured)
      : plan(Plan(seconds, groups, passes)), pace(Program(), plan) {
    if (pacing == Pacing::kMeasured) pace.Learn(plan, {}, {passes, 0, 0}, 1);
  }
  static OperatorPlan Plan(double seconds, uint32_t groups, size_t passes) {
    OperatorPlan plan;
    plan.kernels.resize(1);
    plan.passes.resize(passes);
    for (Pass& pass : plan.passes) pass.dispatches = {{.groups = {groups, 1}}};
    plan.input_bytes = {static_cast<uint64_t>(std::ceil(seconds * (64 << 20)))};
    return plan;
  }

  const OperatorPlan plan;
  Pace pace;
};

using RunPointer = std::shared_ptr<PlannedRun>;

class BatchPickerTest : public ::testing::Test {
 protected:
  RunPointer Queue(const Operator& op) { return Queue(op, PlannedRun{.has_memory = true}); }
  RunPointer Queue(const Operator& op, PlannedRun run) {
    run.plan = &op.plan;
    run.pace = &op.pace;
    auto queued = std::make_shared<PlannedRun>(std::move(run));
    picker_.OnQueued(queued);
    return queued;
  }
  std::vector<RunPointer> Queue(const Operator& op, size_t count) {
    std::vector<RunPointer> runs(count);
    for (RunPointer& run : runs) run = Queue(op);
    return runs;
  }

  // What is due now, of runs that have their memory.
  Batch Pick() {
    EXPECT_TRUE(picker_.is_due());
    BatchPicker::Decision decision = picker_.Pick(device_);
    EXPECT_EQ(decision.needs_memory, nullptr);
    return std::move(decision.batch);
  }
  // The run whose memory is asked for.
  RunPointer PickNeedy() {
    EXPECT_TRUE(picker_.is_due());
    BatchPicker::Decision decision = picker_.Pick(device_);
    EXPECT_TRUE(decision.batch.is_empty());
    return decision.needs_memory;
  }

  static std::vector<RunPointer> RunsOf(const Batch& batch) {
    std::vector<RunPointer> runs;
    for (const RunPart& part : batch.parts) runs.push_back(part.run);
    return runs;
  }
  static bool IsPartOf(const Batch& batch, const RunPointer& run) {
    return batch.is_cut() && batch.parts[0].run == run;
  }
  static bool IsWholeOf(const Batch& batch, const std::vector<RunPointer>& runs) {
    return RunsOf(batch) == runs && batch.ended_runs == runs && batch.has_frame &&
           std::all_of(batch.parts.begin(), batch.parts.end(),
                       [](const RunPart& part) { return part.is_whole(); });
  }

  BatchPicker picker_{kFrames, kMaxRuns};
  absl::Status device_;
  const Operator small_{0.0001};
  const Operator other_small_{0.0002};
  const Operator long_{1, 1000};  // a millisecond for a group
};

TEST_F(BatchPickerTest, HasNothingToDoAtFirst) { EXPECT_FALSE(picker_.is_due()); }

TEST_F(BatchPickerTest, TakesAllThatIsReadyInItsOrder) {
  std::vector<RunPointer> runs;
  for (int i = 0; i < 5; ++i) {
    runs.push_back(Queue(small_));
    runs.push_back(Queue(other_small_));
  }
  EXPECT_TRUE(IsWholeOf(Pick(), runs));
  EXPECT_FALSE(picker_.is_due());
}

// Dispatches are shared within a batch, so that runs of one operator are not to be spread.
TEST_F(BatchPickerTest, KeepsRunsOfOneOperatorTogether) {
  const std::vector<RunPointer> runs = Queue(small_, kMaxRuns);
  EXPECT_TRUE(IsWholeOf(Pick(), runs));
}

TEST_F(BatchPickerTest, LimitsTheRunsOfABatch) {
  const std::vector<RunPointer> runs = Queue(small_, kMaxRuns + 1);
  EXPECT_THAT(Pick().parts, SizeIs(kMaxRuns));
  EXPECT_TRUE(IsWholeOf(Pick(), {runs.back()}));
}

TEST_F(BatchPickerTest, LimitsTheTimeOfABatch) {
  const Operator op(0.04, 40);
  const std::vector<RunPointer> runs = Queue(op, 3);
  EXPECT_TRUE(IsWholeOf(Pick(), {runs[0], runs[1]}));
  EXPECT_TRUE(IsWholeOf(Pick(), {runs[2]}));
}

TEST_F(BatchPickerTest, LimitsTheDispatchesOfABatch) {
  const Operator op(0.001, 1, kMaxBatchDispatches / 2 + 1);
  const std::vector<RunPointer> runs = Queue(op, 2);
  EXPECT_TRUE(IsWholeOf(Pick(), {runs[0]}));
  EXPECT_TRUE(IsWholeOf(Pick(), {runs[1]}));
}

TEST_F(BatchPickerTest, LeavesARunAloneThatGoesAlone) {
  const std::vector<RunPointer> before = Queue(small_, 2);
  const RunPointer alone = Queue(small_, PlannedRun{.goes_alone = true, .has_memory = true});
  const std::vector<RunPointer> after = Queue(small_, 2);
  EXPECT_TRUE(IsWholeOf(Pick(), before));
  EXPECT_TRUE(IsWholeOf(Pick(), {alone}));
  EXPECT_TRUE(IsWholeOf(Pick(), after));
  EXPECT_FALSE(picker_.is_due());
}

TEST_F(BatchPickerTest, LetsARunGoAloneBetweenTheParts) {
  const RunPointer cut = Queue(long_);
  EXPECT_TRUE(IsPartOf(Pick(), cut));
  const RunPointer alone = Queue(small_, PlannedRun{.goes_alone = true, .has_memory = true});
  const RunPointer other = Queue(small_);
  const Batch second = Pick();
  EXPECT_TRUE(IsWholeOf(second, {alone}));
  EXPECT_TRUE(IsPartOf(Pick(), cut));
  picker_.OnCompleted(second);
  EXPECT_TRUE(IsWholeOf(Pick(), {other}));
}

TEST_F(BatchPickerTest, CollectsSmallRunsWhileTheDeviceWorks) {
  Queue(small_);
  const Batch first = Pick();
  Queue(small_, kWorthwhileRuns - 1);
  EXPECT_FALSE(picker_.is_due());
  Queue(small_);
  EXPECT_TRUE(picker_.is_due());
  EXPECT_THAT(Pick().parts, SizeIs(kWorthwhileRuns));

  Queue(small_);
  EXPECT_FALSE(picker_.is_due());
  picker_.OnCompleted(first);
  EXPECT_FALSE(picker_.is_due());  // another batch is still in flight
}

TEST_F(BatchPickerTest, TakesWhatHasCollectedWhenTheDeviceIsIdle) {
  Queue(small_);
  const Batch first = Pick();
  const std::vector<RunPointer> runs = Queue(small_, 2);
  picker_.OnCompleted(first);
  EXPECT_TRUE(IsWholeOf(Pick(), runs));
}

TEST_F(BatchPickerTest, DoesNotLetALargeRunWait) {
  Queue(small_);
  Pick();
  Queue(small_,
        PlannedRun{.input_bytes = (kWorthwhileRuns - 1) * kBytesLikeARun - 1, .has_memory = true});
  EXPECT_FALSE(picker_.is_due());
  Queue(small_);
  EXPECT_TRUE(picker_.is_due());
}

TEST_F(BatchPickerTest, WaitsForAFrame) {
  std::vector<Batch> batches;
  for (uint32_t i = 0; i < kFrames; ++i) {
    Queue(small_, kWorthwhileRuns);
    batches.push_back(Pick());
  }
  Queue(small_, kWorthwhileRuns);
  EXPECT_FALSE(picker_.is_due());
  picker_.OnCompleted(batches[0]);
  EXPECT_TRUE(picker_.is_due());
}

TEST_F(BatchPickerTest, CutsALongRun) {
  const RunPointer run = Queue(long_);
  PlanCursor next;
  while (run->next.pass == 0) {
    const Batch batch = Pick();
    ASSERT_THAT(RunsOf(batch), ElementsAre(run));
    EXPECT_EQ(batch.parts[0].begin, next);
    next = batch.parts[0].end;
    EXPECT_EQ(run->next, next);
    const uint64_t first_group = batch.parts[0].begin.group;
    if (next.pass == 0) {
      EXPECT_EQ(next.group - first_group, 50u);  // kPartSeconds
      EXPECT_THAT(batch.ended_runs, IsEmpty());
    } else {
      // The rest, once it fits into a batch like a whole run.
      EXPECT_LE(1000 - first_group, 100u);  // kBatchSeconds
      EXPECT_THAT(batch.ended_runs, ElementsAre(run));
    }
    picker_.OnCompleted(batch);
  }
  EXPECT_FALSE(picker_.is_due());
}

TEST_F(BatchPickerTest, BeginsWithAShortPartOfAnUnmeasuredRun) {
  const Operator unmeasured(1, 1000, 1, Pacing::kUnmeasured);
  Queue(unmeasured);
  EXPECT_EQ(Pick().parts[0].end, (PlanCursor{0, 0, 5}));
}

// A part's time says nothing about each of several kernels.
TEST_F(BatchPickerTest, MeasuresAKernelAlone) {
  OperatorPlan plan = Operator::Plan(1, 1000, 3);
  plan.kernels.resize(2);
  plan.passes[1].dispatches[0].kernel = 1;
  Pace pace(Program(), plan);
  const auto run = std::make_shared<PlannedRun>();
  run->plan = &plan;
  run->pace = &pace;
  run->has_memory = true;
  run->next = {0, 0, 999};
  picker_.OnQueued(run);
  EXPECT_EQ(Pick().parts[0].end, (PlanCursor{1, 0, 0}));
  pace.Learn(plan, {0, 0, 999}, {1, 0, 0}, 1);
  EXPECT_EQ(Pick().parts[0].end, (PlanCursor{1, 0, 15}));
}

TEST_F(BatchPickerTest, SubmitsTwoPartsOfARunAtATime) {
  const RunPointer run = Queue(long_);
  const Batch first = Pick();
  EXPECT_TRUE(IsPartOf(Pick(), run));
  EXPECT_TRUE(Pick().is_empty());
  EXPECT_FALSE(picker_.is_due());
  picker_.OnCompleted(first);
  EXPECT_TRUE(IsPartOf(Pick(), run));
}

TEST_F(BatchPickerTest, AlternatesPartsWithOtherRuns) {
  const RunPointer run = Queue(long_);
  const std::vector<RunPointer> early = Queue(small_, 2);
  const Batch first = Pick();
  EXPECT_TRUE(IsPartOf(first, run));
  const Batch second = Pick();
  EXPECT_TRUE(IsWholeOf(second, early));
  picker_.OnCompleted(first);
  picker_.OnCompleted(second);

  const Batch third = Pick();
  EXPECT_TRUE(IsPartOf(third, run));
  const std::vector<RunPointer> late = Queue(small_, 3);
  EXPECT_TRUE(IsWholeOf(Pick(), late));
  picker_.OnCompleted(third);
  Queue(small_, 1);
  EXPECT_TRUE(IsPartOf(Pick(), run));
}

TEST_F(BatchPickerTest, DoesNotLetOthersWaitWhereNoMorePartsMayGo) {
  Queue(long_);
  Pick();
  Pick();
  EXPECT_TRUE(Pick().is_empty());
  EXPECT_FALSE(picker_.is_due());
  const RunPointer other = Queue(small_);  // wherever one run is worth a submission
  EXPECT_TRUE(IsWholeOf(Pick(), {other}));
}

TEST_F(BatchPickerTest, CutsOneRunAfterAnother) {
  const Operator op(0.2, 200);
  const RunPointer first = Queue(op);
  const RunPointer second = Queue(op);
  while (first->next.pass == 0) {
    EXPECT_EQ(second->next, PlanCursor());
    const Batch batch = Pick();
    EXPECT_TRUE(IsPartOf(batch, first));
    picker_.OnCompleted(batch);
  }
  EXPECT_TRUE(IsPartOf(Pick(), second));
}

TEST_F(BatchPickerTest, EndsWhatIsAbandonedInTheQueue) {
  std::stop_source abandon;
  const RunPointer kept = Queue(small_);
  const RunPointer abandoned =
      Queue(small_, PlannedRun{.abandoned = abandon.get_token(), .has_memory = true});
  abandon.request_stop();
  const Batch ended = Pick();
  EXPECT_THAT(ended.parts, IsEmpty());
  EXPECT_THAT(ended.ended_runs, ElementsAre(abandoned));
  EXPECT_EQ(abandoned->status, absl::CancelledError("The run was abandoned."));
  EXPECT_TRUE(ended.has_frame);
  EXPECT_TRUE(IsWholeOf(Pick(), {kept}));
  EXPECT_TRUE(kept->status.ok());
}

TEST_F(BatchPickerTest, SubmitsNoMoreOfWhatIsAbandonedUnderWay) {
  std::stop_source abandon;
  const RunPointer run =
      Queue(long_, PlannedRun{.abandoned = abandon.get_token(), .has_memory = true});
  const Batch part = Pick();
  abandon.request_stop();
  const Batch ended = Pick();
  EXPECT_THAT(ended.parts, IsEmpty());
  EXPECT_THAT(ended.ended_runs, ElementsAre(run));

  // Its memory has not come back yet: another run is not refused for want of it.
  const RunPointer other = Queue(small_, PlannedRun{.input_bytes = uint64_t{1} << 30});
  picker_.OnCompleted(part);
  EXPECT_EQ(PickNeedy(), other);
  picker_.OnMemory(absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(Pick().is_empty());
  EXPECT_FALSE(picker_.is_due());
  picker_.OnCompleted(ended);
  EXPECT_EQ(PickNeedy(), other);
}

TEST_F(BatchPickerTest, AsksForTheMemoryOfARunOnce) {
  const RunPointer run = Queue(long_, PlannedRun{});
  EXPECT_EQ(PickNeedy(), run);
  picker_.OnMemory(absl::OkStatus());
  EXPECT_TRUE(IsPartOf(Pick(), run));
  EXPECT_TRUE(IsPartOf(Pick(), run));
}

TEST_F(BatchPickerTest, LeavesARunWithoutMemoryForLater) {
  const RunPointer ready = Queue(small_);
  const RunPointer needy = Queue(small_, PlannedRun{});
  const RunPointer last = Queue(small_);
  EXPECT_EQ(PickNeedy(), needy);
  picker_.OnMemory(absl::ResourceExhaustedError("full"));
  const Batch first = Pick();
  EXPECT_TRUE(IsWholeOf(first, {ready}));

  // The device works, and may give memory back when it has done so.
  EXPECT_EQ(PickNeedy(), needy);
  picker_.OnMemory(absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(Pick().is_empty());
  EXPECT_FALSE(picker_.is_due());
  picker_.OnCompleted(first);
  EXPECT_EQ(PickNeedy(), needy);
  picker_.OnMemory(absl::OkStatus());
  EXPECT_TRUE(IsWholeOf(Pick(), {needy, last}));
}

TEST_F(BatchPickerTest, DoesNotWaitForMemoryThatCameBackMeanwhile) {
  Queue(small_);
  const Batch first = Pick();
  const RunPointer needy =
      Queue(small_, PlannedRun{.input_bytes = kWorthwhileRuns * kBytesLikeARun});
  EXPECT_EQ(PickNeedy(), needy);
  picker_.OnCompleted(first);
  picker_.OnMemory(absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(Pick().is_empty());
  EXPECT_EQ(PickNeedy(), needy);
}

TEST_F(BatchPickerTest, RefusesWhatHasNoMemoryOnAnIdleDevice) {
  const RunPointer needy = Queue(small_, PlannedRun{});
  const RunPointer last = Queue(small_);
  EXPECT_EQ(PickNeedy(), needy);
  picker_.OnMemory(absl::ResourceExhaustedError("full"));
  const Batch batch = Pick();
  EXPECT_THAT(RunsOf(batch), ElementsAre(last));
  EXPECT_THAT(batch.ended_runs, ElementsAre(needy, last));
  EXPECT_EQ(needy->status, absl::ResourceExhaustedError("full"));
}

TEST_F(BatchPickerTest, RefusesAtOnceWhatMemoryFailsForAnotherReason) {
  Queue(small_);
  Pick();
  const RunPointer needy =
      Queue(small_, PlannedRun{.input_bytes = kWorthwhileRuns * kBytesLikeARun});
  EXPECT_EQ(PickNeedy(), needy);
  picker_.OnMemory(absl::InternalError("broken"));
  const Batch batch = Pick();
  EXPECT_THAT(batch.ended_runs, ElementsAre(needy));
  EXPECT_EQ(needy->status, absl::InternalError("broken"));
  EXPECT_FALSE(batch.has_frame);
}

TEST_F(BatchPickerTest, EndsWhatHasFailedAlready) {
  const auto failed =
      std::make_shared<PlannedRun>(PlannedRun{.status = absl::ResourceExhaustedError("before")});
  picker_.OnQueued(failed);
  const RunPointer run = Queue(small_);
  const Batch batch = Pick();
  EXPECT_THAT(RunsOf(batch), ElementsAre(run));
  EXPECT_THAT(batch.ended_runs, ElementsAre(failed, run));
  EXPECT_EQ(failed->status, absl::ResourceExhaustedError("before"));
}

TEST_F(BatchPickerTest, EndsEverythingOnALostDevice) {
  const RunPointer under_way = Queue(long_);
  const Batch part = Pick();
  const RunPointer run = Queue(small_, PlannedRun{});
  device_ = absl::UnavailableError("lost");
  const Batch first = Pick();
  const Batch second = Pick();
  EXPECT_THAT(first.ended_runs, ElementsAre(run));
  EXPECT_THAT(second.ended_runs, ElementsAre(under_way));
  EXPECT_FALSE(first.has_frame || second.has_frame);
  EXPECT_EQ(run->status, device_);
  EXPECT_EQ(under_way->status, device_);
  picker_.OnCompleted(part);
  EXPECT_FALSE(picker_.is_due());
}

TEST_F(BatchPickerTest, EndsAllRunsOfABatchThatCouldNotBeSubmitted) {
  const auto failed =
      std::make_shared<PlannedRun>(PlannedRun{.status = absl::InvalidArgumentError("before")});
  picker_.OnQueued(failed);
  const RunPointer run = Queue(small_);
  Batch batch = Pick();
  picker_.OnNotSubmitted(absl::InternalError("Close"), batch);
  EXPECT_THAT(batch.ended_runs, ElementsAre(failed, run));
  EXPECT_EQ(failed->status, absl::InvalidArgumentError("before"));
  EXPECT_EQ(run->status, absl::InternalError("Close"));
  EXPECT_FALSE(batch.has_frame);

  const RunPointer cut = Queue(long_);
  batch = Pick();
  picker_.OnNotSubmitted(absl::InternalError("Close"), batch);
  EXPECT_THAT(batch.ended_runs, ElementsAre(cut));
  EXPECT_EQ(cut->status, absl::InternalError("Close"));
  EXPECT_FALSE(picker_.is_due());
  // The frames are free, and two parts may go.
  Queue(long_);
  Pick();
  EXPECT_FALSE(Pick().is_empty());
}

TEST_F(BatchPickerTest, FailsWhatIsLeftWhenItStops) {
  const RunPointer under_way = Queue(long_);
  Pick();
  const auto failed =
      std::make_shared<PlannedRun>(PlannedRun{.status = absl::InvalidArgumentError("before")});
  picker_.OnQueued(failed);
  const RunPointer queued = Queue(small_);
  EXPECT_FALSE(picker_.is_closed());
  picker_.OnStop();
  const Batch batch = Pick();
  EXPECT_THAT(batch.parts, IsEmpty());
  EXPECT_THAT(batch.ended_runs, ElementsAre(under_way, failed, queued));
  EXPECT_EQ(under_way->status, absl::UnavailableError("The device is closing."));
  EXPECT_EQ(queued->status, absl::UnavailableError("The device is closing."));
  EXPECT_EQ(failed->status, absl::InvalidArgumentError("before"));
  EXPECT_TRUE(picker_.is_closed());
}

TEST_F(BatchPickerTest, CompletesTheBatchThatItHasBegunWhenItStops) {
  const RunPointer needy = Queue(small_, PlannedRun{});
  EXPECT_EQ(PickNeedy(), needy);
  const RunPointer late = Queue(small_);
  picker_.OnStop();
  picker_.OnMemory(absl::OkStatus());
  EXPECT_TRUE(IsWholeOf(Pick(), {needy}));
  EXPECT_FALSE(picker_.is_closed());
  EXPECT_THAT(Pick().ended_runs, ElementsAre(late));
  EXPECT_TRUE(picker_.is_closed());
}

// For random events in random order: every run ends once, its parts are its plan without gaps, and
// nothing is left.
TEST_F(BatchPickerTest, EndsEveryRunOnce) {
  const Operator operators[] = {Operator(0.0001), Operator(0.03, 30), Operator(0.3, 300, 2),
                                Operator(0.01, 1, 2 * kMaxBatchDispatches),
                                Operator(0.5, 7, 1, Pacing::kUnmeasured)};
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto one_in = [&](uint32_t n) { return random() % n == 0; };
    BatchPicker picker(kFrames, 8);
    std::map<RunPointer, PlanCursor> running;  // and where they go on
    std::map<RunPointer, std::stop_source> abandon;
    std::deque<Batch> in_flight;
    uint32_t queued = 0;
    const auto end = [&](const Batch& batch) {
      for (const RunPointer& run : batch.ended_runs) {
        EXPECT_EQ(running.count(run), 1);
        EXPECT_TRUE(!run->status.ok() || running[run] == (PlanCursor{run->plan->passes.size()}));
        running.erase(run);
      }
    };
    const auto complete = [&] {
      picker.OnCompleted(in_flight.front());
      end(in_flight.front());
      in_flight.pop_front();
    };
    while (queued < 60 || !running.empty()) {
      if (queued < 60 && one_in(2)) {
        ++queued;
        const Operator& op = operators[random() % std::size(operators)];
        std::stop_source source;
        auto run = std::make_shared<PlannedRun>(PlannedRun{.plan = &op.plan,
                                                           .pace = &op.pace,
                                                           .input_bytes = random() % 100000,
                                                           .abandoned = source.get_token(),
                                                           .has_memory = one_in(2)});
        if (one_in(20)) run->status = absl::InvalidArgumentError("failed");
        running[run] = {};
        abandon[run] = source;
        picker.OnQueued(std::move(run));
      }
      if (!running.empty() && one_in(10)) abandon[running.begin()->first].request_stop();
      if (!in_flight.empty() && (one_in(3) || !picker.is_due())) complete();
      if (!picker.is_due()) {
        ASSERT_TRUE(queued < 60 || !in_flight.empty() || running.empty()) << "nothing goes on";
        continue;
      }
      BatchPicker::Decision decision = picker.Pick(absl::OkStatus());
      if (decision.needs_memory != nullptr) {
        if (!in_flight.empty() && one_in(4)) complete();
        picker.OnMemory(one_in(4) ? absl::ResourceExhaustedError("full") : absl::OkStatus());
        continue;
      }
      Batch& batch = decision.batch;
      for (const RunPart& part : batch.parts) {
        EXPECT_TRUE(part.run->has_memory);
        EXPECT_EQ(part.begin, running[part.run]);
        running[part.run] = part.end;
        EXPECT_TRUE(part.is_whole() || batch.parts.size() == 1 || &part == &batch.parts[0]);
      }
      if (!batch.parts.empty() && one_in(20)) {
        picker.OnNotSubmitted(absl::InternalError("refused"), batch);
      }
      if (batch.has_frame) {
        in_flight.push_back(std::move(batch));
      } else {
        end(batch);
      }
      EXPECT_LE(in_flight.size(), kFrames);
      EXPECT_LE(std::count_if(in_flight.begin(), in_flight.end(),
                              [](const Batch& each) { return each.is_cut(); }),
                kMaxCutBatches);
    }
    while (!in_flight.empty()) complete();
  }
}

}  // namespace
}  // namespace opmill
