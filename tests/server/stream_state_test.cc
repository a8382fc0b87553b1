// What a stream reads and writes, how it ends, and when its caller has stalled.
#include "server/api/stream_state.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/stream_state_fixture.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Room = StreamState::Room;
using Stall = StreamState::Stall;

TEST_F(StreamStateTest, ReadsOneMessageAndHandlesOneAtATime) {
  EXPECT_EQ(Next(), "read");
  EXPECT_EQ(Next(), "");
  state_.ReadDone(true);
  EXPECT_EQ(Next(), "handle a message, read");
  state_.ReadDone(true);
  EXPECT_EQ(Next(), "");  // the first is being handled
  Handled();
  EXPECT_EQ(Next(), "handle a message, read");
  Handled();
  EXPECT_EQ(Next(), "");
}

TEST_F(StreamStateTest, DoesNotReadAheadOnAThreadThatHasOtherWork) {
  EXPECT_EQ(Next(false), "read");
  state_.ReadDone(true);
  EXPECT_EQ(Next(false), "handle a message");
  EXPECT_EQ(Next(false), "");
  Handled();
  EXPECT_EQ(Next(false), "read");
}

TEST_F(StreamStateTest, WritesOneMessageAtATimeAndGivesExecutionsTheirTurns) {
  const auto one = Begin(1);
  const auto two = Begin(2);
  Ready(1, one, 3);
  EXPECT_EQ(Next(), "write 1");
  Ready(2, two, 2);
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(NextAfterWrite(), "write 1");
  EXPECT_EQ(NextAfterWrite(), "write 2");
  EXPECT_EQ(complete_, nullptr);
  EXPECT_EQ(NextAfterWrite(), "write the last of 1");
  EXPECT_TRUE(state_.has_replies());
  EXPECT_EQ(NextAfterWrite(), "write the last of 2");
  EXPECT_TRUE(complete_ == one);
  EXPECT_FALSE(state_.has_replies());
  EXPECT_EQ(NextAfterWrite(), "");
  EXPECT_TRUE(complete_ == two);
  EXPECT_THAT(state_.open(), IsEmpty());
}

TEST_F(StreamStateTest, WritesTheErrorOfResultsThatAreGone) {
  const auto execution = Begin(1);
  Ready(1, execution, 2);
  EXPECT_EQ(Next(), "write 1");
  messages_[execution.get()] = 0;
  EXPECT_EQ(NextAfterWrite(), "write the end of 1");
  EXPECT_EQ(NextAfterWrite(), "");
  EXPECT_EQ(complete_, nullptr);
  EXPECT_THAT(state_.open(), IsEmpty());
}

TEST_F(StreamStateTest, EndsAfterTheHalfCloseWhenEveryExecutionHasEnded) {
  const auto complete = Begin(1);
  const auto lacks_input = Begin(2);
  HalfClose();
  state_.Ended(2, *lacks_input, Error("half-closed"), kInputMayFollow);
  EXPECT_EQ(Next(), "write an error of 2: half-closed");
  EXPECT_EQ(NextAfterWrite(), "");
  Ready(1, complete);
  EXPECT_EQ(Next(), "write the last of 1");
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(NextAfterWrite(), "finish: OK");
  EXPECT_EQ(Next(), "");
}

TEST_F(StreamStateTest, EndsTheInputsAfterTheMessagesThatCameBefore) {
  Receive();
  state_.ReadDone(false);
  EXPECT_EQ(Next(), "");
  Handled();
  EXPECT_EQ(Next(), "end the inputs");
  EXPECT_EQ(Next(), "");  // while it does, the call must not end
  state_.HalfCloseHandled();
  EXPECT_EQ(Next(), "finish: OK");
}

TEST_F(StreamStateTest, EndsADrainingStreamThatHasNothingUnderWay) {
  const auto execution = Begin(1);
  state_.Drain();
  EXPECT_EQ(Next(), "");
  state_.ReadDone(true);  // what comes is still handled
  EXPECT_EQ(Next(), "handle a message, read");
  Handled();
  Ready(1, execution);
  EXPECT_EQ(Next(), "write the last of 1");
  state_.ReadDone(true);
  EXPECT_EQ(NextAfterWrite(), "handle a message, read");
  state_.Refused(2, Error("draining"), kInputMayFollow);
  EXPECT_EQ(Next(), "write an error of 2: draining");
  Handled();
  EXPECT_EQ(NextAfterWrite(), kDrained);
}

TEST_F(StreamStateTest, EndsAnIdleStreamAtOnceWhenItDrains) {
  EXPECT_EQ(Next(), "read");
  state_.Drain();
  EXPECT_EQ(Next(), kDrained);
}

TEST_F(StreamStateTest, PrefersTheHalfCloseToTheDrain) {
  EXPECT_EQ(Next(), "read");
  state_.Drain();
  state_.ReadDone(false);
  EXPECT_EQ(Next(), "end the inputs");
  state_.HalfCloseHandled();
  EXPECT_EQ(Next(), "finish: OK");
}

TEST_F(StreamStateTest, FailsWithItsFirstErrorAfterTheWriteInFlight) {
  const auto one = Begin(1);
  const auto two = Begin(2);
  Ready(1, one, 2);
  EXPECT_EQ(Next(), "write 1");
  Fail(Error("first"));
  EXPECT_THAT(cancelled_, UnorderedElementsAre(one, two));
  Fail(Error("second"));
  state_.Ended(2, *two, Error("first"), kInputMayFollow);
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(NextAfterWrite(), "finish: first");
  EXPECT_EQ(Next(), "");
}

TEST_F(StreamStateTest, FailsAfterTheMessageThatIsBeingHandled) {
  Receive();
  Fail(Error("gone"));
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(state_.RoomFor(1), Room::kStreamEnds);
  Handled();
  EXPECT_EQ(Next(), "finish: gone");
}

TEST_F(StreamStateTest, FailsWhileABeginWaits) {
  Receive();
  EXPECT_TRUE(state_.MayWait(false, AtMilliseconds(0)));
  EXPECT_TRUE(state_.MessageWaits());
  Fail(Error("gone"));
  EXPECT_EQ(Next(), "finish: gone");
  EXPECT_FALSE(state_.MayWait(true, AtMilliseconds(0)));
  state_.RetryLater();
  EXPECT_EQ(Next(), "");
}

TEST_F(StreamStateTest, ABeginWaitsForItsProgram) {
  for (const bool comes_first : {false, true}) {
    Receive();
    if (comes_first) state_.ProgramMade();
    state_.MessageWaitsForProgram();
    if (!comes_first) {
      EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(5000)), Stall::kNone);
      state_.RetryLater();  // only the program matters
      EXPECT_EQ(Next(), "");
      state_.ProgramMade();
    }
    EXPECT_EQ(Next(), "try the begin");
    // From here on it waits for room like others.
    EXPECT_TRUE(state_.MayWait(false, now_));
    Handled();
  }
}

TEST_F(StreamStateTest, FailsWhileABeginWaitsForItsProgram) {
  Receive();
  state_.MessageWaitsForProgram();
  Fail(Error("gone"));
  EXPECT_EQ(Next(), "finish: gone");
  state_.ProgramMade();
  EXPECT_EQ(Next(), "");
}

TEST_F(StreamStateTest, DoesNotKeepWhatBeginsWhileItFails) {
  Receive();
  ASSERT_EQ(state_.RoomFor(1), Room::kFree);
  Fail(Error("gone"));
  EXPECT_THAT(cancelled_, IsEmpty());
  EXPECT_FALSE(state_.Begun(1, AnyExecution(), false));
  EXPECT_THAT(state_.open(), IsEmpty());
}

TEST_F(StreamStateTest, StopsReadingWhileTooManyErrorsWait) {
  const auto execution = Begin(1);
  Ready(1, execution, 2);
  EXPECT_EQ(Next(), "write 1");
  Receive();
  for (size_t i = 0; i < StreamState::kMaxWaitingErrors; ++i) {
    state_.Refused(2, Error("refused"), kNoInputFollows);
  }
  state_.ReadDone(true);
  Handled();
  EXPECT_EQ(Next(), "");  // neither the message that came nor another one
  EXPECT_EQ(NextAfterWrite(), "write the last of 1");  // results are no errors
  EXPECT_EQ(NextAfterWrite(), "write an error of 2: refused, handle a message, read");
}

TEST_F(StreamStateTest, AsksForNoMessageWhileTooManyErrorsWait) {
  EXPECT_EQ(Next(), "read");
  state_.ReadDone(true);
  EXPECT_EQ(Next(false), "handle a message");
  state_.Refused(1, Error("first"), kNoInputFollows);
  EXPECT_EQ(Next(false), "write an error of 1: first");
  for (size_t i = 0; i < StreamState::kMaxWaitingErrors; ++i) {
    state_.Refused(2, Error("refused"), kNoInputFollows);
  }
  Handled();
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(NextAfterWrite(), "write an error of 2: refused, read");
}

TEST_F(StreamStateTest, ReportsACallerWhoDoesNotRead) {
  const auto execution = Begin(1);
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(5000)), Stall::kInput);
  now_ = AtMilliseconds(5000);
  Ready(1, execution);
  EXPECT_EQ(Next(), "write the last of 1");
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(5999)), Stall::kInput);
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(6000)), Stall::kReader);
  EXPECT_EQ(NextAfterWrite(), "");
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(9000)), Stall::kInput);
}

TEST_F(StreamStateTest, ReportsACallerWhoDoesNotReadAlsoAfterAnError) {
  const auto execution = Begin(1);
  Ready(1, execution);
  EXPECT_EQ(Next(), "write the last of 1");
  Fail(absl::InvalidArgumentError("not a message"));
  EXPECT_EQ(Next(), "");  // it cannot end before the write does
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(999)), Stall::kNone);
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(1000)), Stall::kReader);
  EXPECT_EQ(NextAfterWrite(), "finish: not a message");
  EXPECT_EQ(state_.StalledFor(absl::Seconds(1), AtMilliseconds(9000)), Stall::kNone);
}

TEST_F(StreamStateTest, BlamesNoCallerWhoseInputItDoesNotTake) {
  const absl::Duration timeout = absl::Seconds(1);
  EXPECT_EQ(state_.StalledFor(timeout, AtMilliseconds(5000)), Stall::kNone);  // no read
  Receive();
  EXPECT_EQ(state_.StalledFor(timeout, AtMilliseconds(5000)),
            Stall::kNone);  // a message is being handled
  state_.MessageWaits();
  EXPECT_EQ(state_.StalledFor(timeout, AtMilliseconds(5000)), Stall::kNone);  // a begin waits
  state_.RetryLater();
  EXPECT_EQ(Next(), "try the begin");
  now_ = AtMilliseconds(6000);
  Handled();
  EXPECT_EQ(state_.StalledFor(timeout, AtMilliseconds(6999)),
            Stall::kNone);  // it has waited until then
  EXPECT_EQ(state_.StalledFor(timeout, AtMilliseconds(7000)), Stall::kInput);
  Fail(Error("gone"));
  EXPECT_EQ(state_.StalledFor(timeout, AtMilliseconds(9000)), Stall::kNone);
}

TEST_F(StreamStateTest, LetsGoOfEverythingWhenTheCallIsDone) {
  const auto open = Begin(1);
  const auto ready = Begin(2);
  const auto twin = Begin(3);
  Receive();
  state_.BegunAgain(3, twin);
  Ready(2, ready);
  Fail(Error("gone"));
  cancelled_.clear();
  Handled();
  EXPECT_EQ(Next(), "finish: gone");
  EXPECT_THAT(state_.Close(), UnorderedElementsAre(open, ready));
  for (const auto& execution : {open, ready, twin}) {
    state_.Ended(1, *execution, Error("gone"), kInputMayFollow);
  }
  state_.Ready(2, ready);
  state_.Refused(4, Error("gone"), kInputMayFollow);
  EXPECT_EQ(Next(), "");
  EXPECT_FALSE(state_.has_replies());
  EXPECT_EQ(open.use_count(), 1);
  EXPECT_EQ(ready.use_count(), 1);
  EXPECT_EQ(twin.use_count(), 1);
}

}  // namespace
}  // namespace opmill
