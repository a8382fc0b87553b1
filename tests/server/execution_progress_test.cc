#include "server/execution/execution_progress.h"

#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {
namespace {

using Received = ExecutionProgress::Received;

class ExecutionProgressTest : public testing::Test {
 protected:
  static absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

  Received Receive(uint64_t offset, size_t size, int at) {
    IncomingChunk chunk;
    chunk.offset = offset;
    chunk.data = Payload(nullptr, 0, 0, size);  // the bytes are not read
    return progress_.Receive(chunk, At(at));
  }

  // 8 bytes of input; started at 0 s.
  ExecutionProgress progress_{
      ProgramOf(*Validate(ReduceDesc{.input = {DataType::kFloat32, {2}, {}}, .axes = {0}})), At(0)};
};

TEST_F(ExecutionProgressTest, GoesFromTheFirstByteToTheLast) {
  EXPECT_EQ(Receive(0, 4, 1), Received::kMore);
  EXPECT_EQ(progress_.stage(), Stage::kUploading);
  EXPECT_FALSE(progress_.Prepare(/*was_cached=*/false, absl::Seconds(7), At(2)));
  EXPECT_EQ(Receive(4, 4, 3), Received::kEnqueue);
  EXPECT_EQ(progress_.stage(), Stage::kQueued);
  EXPECT_TRUE(progress_.Enqueue(At(4)));
  EXPECT_TRUE(progress_.Submit(At(6)));
  EXPECT_EQ(progress_.stage(), Stage::kRunning);
  EXPECT_TRUE(progress_.Compute(
      {.queued = absl::Seconds(1), .executed = absl::Seconds(5), .batch_size = 9}, At(12)));
  EXPECT_EQ(progress_.stage(), Stage::kStreaming);
  EXPECT_EQ(progress_.report(At(13)).times.download, absl::Seconds(1));
  EXPECT_EQ(progress_.End(absl::OkStatus(), At(14)), Stage::kStreaming);

  EXPECT_TRUE(progress_.ended());
  EXPECT_EQ(progress_.status(), absl::OkStatus());
  const ExecutionProgress::Report report = progress_.report(At(99));
  EXPECT_EQ(report.times.upload, absl::Seconds(3));
  EXPECT_EQ(report.times.compile, absl::Seconds(7));
  EXPECT_EQ(report.times.queue, absl::Seconds(2 + 1));
  EXPECT_EQ(report.times.compute, absl::Seconds(5));
  EXPECT_EQ(report.times.download, absl::Seconds(2));
  EXPECT_EQ(report.batch_size, 9u);
  EXPECT_EQ(progress_.report(At(14)).total, absl::Seconds(14));
  EXPECT_EQ(report.begun_at, At(0));
  EXPECT_EQ(report.uploaded_at, At(3));
  EXPECT_EQ(report.compiled_at, At(2));
  EXPECT_EQ(report.running_at, At(6 + 1));
  EXPECT_EQ(report.computed_at, At(12));
}

TEST_F(ExecutionProgressTest, IsEnqueuedOnceInputAndOperatorAreReady) {
  EXPECT_EQ(Receive(0, 8, 1), Received::kComplete);
  EXPECT_TRUE(progress_.Prepare(/*was_cached=*/true, absl::Seconds(7), At(2)));
  EXPECT_TRUE(progress_.report(At(1)).was_cached);
  EXPECT_EQ(progress_.report(At(1)).times.compile, absl::ZeroDuration());
  EXPECT_EQ(progress_.report(At(1)).compiled_at, absl::InfinitePast());
}

TEST_F(ExecutionProgressTest, StallsOnlyWhileItWaitsForInput) {
  EXPECT_EQ(progress_.stalled(At(2)), absl::Seconds(2));
  Receive(0, 4, 3);
  EXPECT_EQ(progress_.stalled(At(5)), absl::Seconds(2));
  Receive(4, 4, 6);
  EXPECT_EQ(progress_.stalled(At(60)), absl::ZeroDuration());
}

// Every event, in every stage, after the end.
TEST_F(ExecutionProgressTest, EventsAfterTheEndHaveNoEffect) {
  const absl::Status error = absl::DeadlineExceededError("late");
  for (int steps = 0; steps <= 4; ++steps) {
    ExecutionProgress progress(
        ProgramOf(*Validate(ReduceDesc{.input = {DataType::kFloat32, {2}, {}}, .axes = {0}})),
        At(0));
    IncomingChunk all;
    all.data = Payload(nullptr, 0, 0, 8);
    const Stage stages[] = {Stage::kUploading, Stage::kQueued, Stage::kQueued, Stage::kRunning,
                            Stage::kStreaming};
    if (steps >= 1) progress.Receive(all, At(1));
    if (steps >= 2) progress.Prepare(true, {}, At(2));
    if (steps >= 3) {
      progress.Enqueue(At(2));
      progress.Submit(At(3));
    }
    if (steps >= 4) progress.Compute({}, At(4));
    EXPECT_EQ(progress.End(error, At(5)), stages[steps]);

    EXPECT_EQ(progress.Receive(all, At(6)), Received::kMore);
    EXPECT_FALSE(progress.Prepare(true, {}, At(6)));
    EXPECT_FALSE(progress.Enqueue(At(6)));
    EXPECT_FALSE(progress.Submit(At(6)));
    EXPECT_FALSE(progress.Compute({}, At(6)));
    EXPECT_EQ(progress.End(absl::OkStatus(), At(6)), std::nullopt);
    EXPECT_EQ(progress.status(), error);
    EXPECT_EQ(progress.stalled(At(6)), absl::ZeroDuration());
  }
}

// Each step requires the previous one.
TEST_F(ExecutionProgressTest, SkipsNoStage) {
  EXPECT_FALSE(progress_.Enqueue(At(1)));
  EXPECT_FALSE(progress_.Submit(At(1)));
  EXPECT_FALSE(progress_.Compute({}, At(1)));
  Receive(0, 8, 1);
  EXPECT_FALSE(progress_.Compute({}, At(1)));
  EXPECT_EQ(progress_.stage(), Stage::kQueued);
}

}  // namespace
}  // namespace opmill
