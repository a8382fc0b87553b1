// What becomes of a begin: room, waiting, ids that are begun again, and ids whose input still
// comes.
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/stream_state.h"
#include "server/status/retry_delay.h"
#include "tests/server/stream_state_fixture.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

using ::testing::IsEmpty;
using Room = StreamState::Room;
using Work = StreamState::Work;
using Written = StreamState::Written;

TEST_F(StreamStateTest, HasNoRoomForMoreExecutionsThanItsLimit) {
  for (uint64_t id = 1; id <= 2; ++id) Begin(id);
  const auto last = Begin(3);
  Receive();
  EXPECT_EQ(state_.RoomFor(4), Room::kFull);
  state_.Ended(3, *last, Error("ended"), kNoInputFollows);
  EXPECT_EQ(state_.RoomFor(4), Room::kFree);
  EXPECT_EQ(StreamIsFull(3).message(),
            "The stream has 3 executions (max_executions_per_stream) under way.");
  EXPECT_EQ(RetryDelayOf(StreamIsFull(3)), absl::Milliseconds(500));
}

TEST_F(StreamStateTest, TriesABeginThatWaitsWhenSomethingEndsOrTheTimeHasCome) {
  const auto execution = Begin(1);
  Receive();
  ASSERT_TRUE(state_.MayWait(true, AtMilliseconds(0)));
  EXPECT_TRUE(state_.MessageWaits());
  state_.ReadDone(true);
  EXPECT_EQ(Next(), "");  // what is behind it waits too
  state_.RetryLater();
  EXPECT_EQ(Next(), "try the begin");
  ASSERT_TRUE(state_.MayWait(true, AtMilliseconds(20)));
  EXPECT_TRUE(state_.MessageWaits());
  Ready(1, execution);
  EXPECT_EQ(Next(), "write the last of 1");
  EXPECT_EQ(NextAfterWrite(), "try the begin");
  ASSERT_TRUE(state_.MayWait(false, AtMilliseconds(30)));
  EXPECT_FALSE(state_.MessageWaits()) << "one timer at a time";
  state_.RetryLater();
  EXPECT_EQ(Next(), "try the begin");
  EXPECT_TRUE(state_.Begun(2, AnyExecution(), false));
  Handled();
  EXPECT_EQ(Next(), "handle a message, read");
}

TEST_F(StreamStateTest, TriesABeginAgainAtOnceIfSomethingEndedMeanwhile) {
  const auto execution = Begin(1);
  Receive();
  state_.Ended(1, *execution, Error("ended"), kNoInputFollows);
  ASSERT_TRUE(state_.MayWait(false, AtMilliseconds(0)));
  state_.MessageWaits();
  EXPECT_EQ(Next(), "write an error of 1: ended, try the begin");
}

TEST_F(StreamStateTest, LetsABeginWaitWhileOthersProgressAndForItsPatienceAfterThat) {
  Receive();
  const auto wait = [this](bool progresses, int at) {
    if (!state_.MayWait(progresses, AtMilliseconds(at))) return false;
    state_.MessageWaits();
    state_.RetryLater();
    EXPECT_EQ(Next(), "try the begin");
    return true;
  };
  EXPECT_TRUE(wait(false, 10'000));
  EXPECT_TRUE(wait(false, 11'999));
  EXPECT_TRUE(wait(true, 12'500));
  EXPECT_TRUE(wait(true, 100'000));
  EXPECT_TRUE(wait(false, 101'999));
  EXPECT_FALSE(wait(false, 102'000));
  state_.Refused(1, Error("full"), kInputMayFollow);
  Handled();
  // The next begin has its own patience.
  EXPECT_EQ(Next(), "write an error of 1: full");
  Receive();
  EXPECT_TRUE(wait(false, 103'000));
  EXPECT_TRUE(wait(false, 104'999));
  EXPECT_FALSE(wait(false, 105'000));
}

TEST_F(StreamStateTest, EndsNeitherForADrainNorForAHalfCloseWhileABeginWaits) {
  Receive();
  state_.MessageWaits();
  state_.Drain();
  EXPECT_EQ(Next(), "");
  state_.ReadDone(false);
  EXPECT_EQ(Next(), "");
  state_.RetryLater();
  EXPECT_EQ(Next(), "try the begin");
  Handled();
  EXPECT_EQ(Next(), "end the inputs");
}

// Each of the two ways in which the first one's end can come.
TEST_F(StreamStateTest, ABeginOfAnOpenIdEndsBoth) {
  for (const bool end_comes_at_once : {true, false}) {
    const auto twin = Begin(1);
    Receive();
    ASSERT_EQ(state_.Find(1), twin);
    if (end_comes_at_once) state_.Ended(1, *twin, Error("twice"), kInputMayFollow);
    state_.BegunAgain(1, twin);
    EXPECT_EQ(state_.Find(1), nullptr);
    EXPECT_TRUE(state_.IsAbandoned(1));
    Handled();
    if (!end_comes_at_once) {
      EXPECT_THAT(state_.open(), IsEmpty());
      state_.Drain();
      EXPECT_EQ(Next(), "") << "the end of the first has not been told";
      state_.Ended(1, *twin, Error("twice"), kInputMayFollow);
    }
    EXPECT_EQ(Next(), "write an error of 1: twice");
    EXPECT_EQ(NextAfterWrite(), end_comes_at_once ? "" : kDrained);
  }
}

TEST_F(StreamStateTest, TheEndOfATwinIsNotThatOfItsSuccessor) {
  const auto twin = Begin(1);
  Receive();
  state_.BegunAgain(1, twin);
  Handled();
  const auto successor = Begin(1);
  state_.Ended(1, *twin, Error("twice"), kNoInputFollows);
  EXPECT_EQ(state_.Find(1), successor);
  EXPECT_EQ(Next(), "write an error of 1: twice");
  HalfClose();
  EXPECT_EQ(NextAfterWrite(), "");
  Ready(1, successor);
  EXPECT_EQ(Next(), "write the last of 1");
  EXPECT_EQ(NextAfterWrite(), "finish: OK");
}

TEST_F(StreamStateTest, ATwinWhoseResultsAreBeingWrittenEndsWithAnError) {
  const auto twin = Begin(1);
  Ready(1, twin, 3);
  EXPECT_EQ(Next(), "write 1");
  Receive();
  state_.BegunAgain(1, twin);
  Handled();
  HalfClose();
  messages_[twin.get()] = 0;
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(NextAfterWrite(), "write the end of 1");
  EXPECT_EQ(NextAfterWrite(), "finish: OK");
}

// The end may be told before or after the call has learned that the execution has begun.
TEST_F(StreamStateTest, WaitsForTheEndOfWhatEndedWhileItBegan) {
  for (const bool end_comes_first : {true, false}) {
    StreamState state(3);
    EXPECT_TRUE(state.Advance(true).read);
    state.ReadDone(true);
    EXPECT_EQ(state.Advance(true).work, Work::kMessage);
    EXPECT_EQ(state.RoomFor(1), Room::kFree);
    const auto execution = AnyExecution();
    if (end_comes_first) state.Ended(1, *execution, Error("late"), kInputMayFollow);
    EXPECT_TRUE(state.Begun(1, execution, true));
    EXPECT_TRUE(state.IsAbandoned(1));
    state.ReadDone(false);
    state.MessageHandled(AtMilliseconds(0));
    StreamState::Actions actions = state.Advance(true);
    EXPECT_EQ(actions.work, Work::kHalfClose);
    state.HalfCloseHandled();
    if (!end_comes_first) {
      EXPECT_FALSE(state.Advance(true).finish.has_value());
      state.Ended(1, *execution, Error("late"), kInputMayFollow);
      actions = state.Advance(true);
    }
    ASSERT_TRUE(actions.write.has_value());
    EXPECT_EQ(actions.write->error, Error("late"));
    state.WriteStarted(*std::move(actions.write), Written::kError, AtMilliseconds(0));
    state.WriteDone();
    EXPECT_EQ(state.Advance(true).finish, absl::OkStatus());
  }
}

TEST_F(StreamStateTest, RemembersIdsForWhichInputMayFollow) {
  const auto execution = Begin(1);
  EXPECT_FALSE(state_.IsAbandoned(1));
  state_.Ended(1, *execution, Error("ended"), kInputMayFollow);
  EXPECT_TRUE(state_.IsAbandoned(1));
  EXPECT_EQ(Next(), "write an error of 1: ended");
  Refuse(2, kInputMayFollow);
  EXPECT_TRUE(state_.IsAbandoned(2));
  Refuse(3, kNoInputFollows);
  EXPECT_FALSE(state_.IsAbandoned(3));
  Begin(1);
  EXPECT_FALSE(state_.IsAbandoned(1));
}

TEST_F(StreamStateTest, ForgetsTheOldestOfTooManyIds) {
  constexpr uint64_t kFirst = 1;
  const uint64_t last = kFirst + StreamState::kMaxAbandoned;
  Receive();
  for (uint64_t id = kFirst; id <= last; ++id) state_.Refused(id, Error("refused"), true);
  EXPECT_FALSE(state_.IsAbandoned(kFirst));
  EXPECT_TRUE(state_.IsAbandoned(kFirst + 1));
  EXPECT_TRUE(state_.IsAbandoned(last));
}

TEST_F(StreamStateTest, RemembersAnIdHoweverOftenItIsUsed) {
  Receive();
  for (size_t i = 0; i <= 2 * StreamState::kMaxAbandoned; ++i) {
    ASSERT_EQ(state_.RoomFor(7), Room::kFree);
    state_.Refused(7, Error("refused"), kInputMayFollow);
    ASSERT_TRUE(state_.IsAbandoned(7)) << i;
  }
}

}  // namespace
}  // namespace opmill
