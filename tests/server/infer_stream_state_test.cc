#include "server/oip/infer_stream_state.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/oip/infer_request.h"
#include "tests/server/any_execution.h"

namespace opmill::oip {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class InferStreamStateTest : public testing::Test {
 protected:
  // "write 2", "write an error: why"; "finish: status"; "read". Empty for nothing.
  std::string Next() {
    const InferStreamState::Actions actions = state_.Advance(now_);
    std::vector<std::string> done;
    if (actions.write.has_value()) {
      const absl::Status& error = actions.write->error;
      done.push_back(error.ok() ? absl::StrCat("write ", NumberOf(*actions.write->request))
                                : absl::StrCat("write an error: ", error.message()));
    }
    if (actions.finish.has_value()) {
      done.push_back(absl::StrCat("finish: ", absl::StatusCodeToString(actions.finish->code())));
    }
    if (actions.read) done.push_back("read");
    return absl::StrJoin(done, ", ");
  }
  std::string NextAfterWrite() {
    complete_ = state_.WriteDone();
    return Next();
  }

  // A request has arrived, and is being handled.
  uint64_t Read() {
    requests_.push_back(std::make_shared<InferRequest>());
    return state_.RequestRead(requests_.back()).value_or(0);
  }
  // It has begun an execution.
  std::shared_ptr<Execution> Begin() {
    const uint64_t number = Read();
    auto execution = AnyExecution();
    EXPECT_TRUE(state_.Begun(number, execution).ok());
    state_.RequestHandled();
    return execution;
  }
  void Ready(uint64_t number, const std::shared_ptr<Execution>& execution) {
    state_.Ready(number, execution, absl::OkStatus());
  }

  size_t NumberOf(const InferRequest& request) const {
    size_t number = 0;
    while (requests_.at(number).get() != &request) ++number;
    return number + 1;
  }

  InferStreamState state_{3};
  absl::Time now_ = absl::UnixEpoch();
  std::vector<std::shared_ptr<InferRequest>> requests_;
  std::shared_ptr<Execution> complete_;  // by the last WriteDone
};

TEST_F(InferStreamStateTest, AnswersInTheOrderOfTheRequests) {
  EXPECT_EQ(Next(), "read");
  const auto first = Begin();
  EXPECT_EQ(Next(), "read");
  const auto second = Begin();
  EXPECT_EQ(Next(), "read");
  Ready(2, second);
  EXPECT_EQ(Next(), "");  // the first is not ready
  Ready(1, first);
  EXPECT_EQ(Next(), "write 1");
  EXPECT_EQ(Next(), "");  // one write at a time
  EXPECT_EQ(NextAfterWrite(), "write 2");
  EXPECT_EQ(complete_, first);
  EXPECT_EQ(NextAfterWrite(), "");
  EXPECT_EQ(complete_, second);
  state_.HalfClosed();
  EXPECT_EQ(Next(), "finish: OK");
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(state_.requests(), 2u);
}

TEST_F(InferStreamStateTest, ARefusedRequestIsAnsweredInItsTurnAndTheStreamContinues) {
  EXPECT_EQ(Next(), "read");
  const auto first = Begin();
  EXPECT_EQ(Next(), "read");
  state_.Ready(Read(), nullptr, absl::InvalidArgumentError("refused"));
  EXPECT_EQ(Next(), "");
  state_.RequestHandled();
  EXPECT_EQ(Next(), "read");
  Ready(1, first);
  EXPECT_EQ(Next(), "write 1");
  EXPECT_EQ(NextAfterWrite(), "write an error: refused");
  EXPECT_EQ(NextAfterWrite(), "");
  EXPECT_EQ(complete_, nullptr);
}

TEST_F(InferStreamStateTest, AnExecutionMayBeReadyBeforeItHasBegun) {
  EXPECT_EQ(Next(), "read");
  const uint64_t number = Read();
  const auto execution = AnyExecution();
  Ready(number, execution);
  EXPECT_EQ(Next(), "write 1");
  EXPECT_EQ(NextAfterWrite(), "");
  EXPECT_EQ(complete_, execution);
  EXPECT_TRUE(state_.Begun(number, execution).ok());
  state_.RequestHandled();
  EXPECT_EQ(Next(), "read");
}

TEST_F(InferStreamStateTest, IsNotReadWhileAllItsRequestsWaitForTheirAnswer) {
  EXPECT_EQ(Next(), "read");
  const auto first = Begin();
  EXPECT_EQ(Next(), "read");
  Begin();
  EXPECT_EQ(Next(), "read");
  Begin();
  EXPECT_EQ(Next(), "");
  Ready(1, first);
  EXPECT_EQ(Next(), "write 1, read");
}

TEST_F(InferStreamStateTest, AHalfClosedStreamEndsAfterItsLastAnswer) {
  EXPECT_EQ(Next(), "read");
  const auto execution = Begin();
  EXPECT_EQ(Next(), "read");
  state_.HalfClosed();
  EXPECT_EQ(Next(), "");
  Ready(1, execution);
  EXPECT_EQ(Next(), "write 1");
  EXPECT_EQ(NextAfterWrite(), "finish: OK");
}

TEST_F(InferStreamStateTest, ADrainingStreamAnswersAndThenEnds) {
  EXPECT_EQ(Next(), "read");
  const auto execution = Begin();
  state_.Drain();
  EXPECT_EQ(Next(), "read");
  Ready(1, execution);
  EXPECT_EQ(Next(), "write 1");
  EXPECT_EQ(NextAfterWrite(), "finish: UNAVAILABLE");
}

TEST_F(InferStreamStateTest, ADrainingStreamDoesNotDropARequestThatHasArrived) {
  EXPECT_EQ(Next(), "read");
  state_.Ready(Read(), nullptr, absl::UnavailableError("draining"));
  state_.Drain();
  EXPECT_EQ(Next(), "write an error: draining");
  EXPECT_EQ(NextAfterWrite(), "");  // the request is still being handled
  state_.RequestHandled();
  EXPECT_EQ(Next(), "finish: UNAVAILABLE");
}

TEST_F(InferStreamStateTest, EndsWithItsFirstErrorAndNamesWhatIsToBeCancelled) {
  EXPECT_EQ(Next(), "read");
  const auto first = Begin();
  EXPECT_EQ(Next(), "read");
  const auto second = Begin();
  Ready(1, first);
  EXPECT_EQ(Next(), "write 1, read");
  EXPECT_THAT(state_.Fail(absl::InternalError("first")), UnorderedElementsAre(first, second));
  EXPECT_EQ(Next(), "");  // a write is in flight
  Ready(2, second);
  EXPECT_THAT(state_.Fail(absl::CancelledError("second")), UnorderedElementsAre(first, second));
  EXPECT_EQ(NextAfterWrite(), "finish: INTERNAL");
  EXPECT_THAT(state_.Close(), ElementsAre(second));
  EXPECT_THAT(state_.Close(), IsEmpty());
  Ready(2, second);  // another thread is late
  EXPECT_EQ(Next(), "");
}

TEST_F(InferStreamStateTest, AStreamThatFailsDuringABeginCancelsIt) {
  EXPECT_EQ(Next(), "read");
  const uint64_t number = Read();
  EXPECT_THAT(state_.Fail(absl::CancelledError("gone")), IsEmpty());
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(state_.Begun(number, AnyExecution()), absl::CancelledError("gone"));
  state_.RequestHandled();
  EXPECT_EQ(Next(), "finish: CANCELLED");
  EXPECT_EQ(state_.Close().size(), 1u);
}

TEST_F(InferStreamStateTest, ARequestThatArrivesAfterTheErrorIsNotHandled) {
  EXPECT_EQ(Next(), "read");
  state_.Fail(absl::CancelledError("gone"));
  EXPECT_EQ(Read(), 0u);
  EXPECT_EQ(Next(), "finish: CANCELLED");
}

TEST_F(InferStreamStateTest, IsUnreadWhileAWriteIsInFlightForLong) {
  EXPECT_EQ(Next(), "read");
  const auto execution = Begin();
  now_ += absl::Seconds(10);
  EXPECT_FALSE(state_.IsUnread(absl::Seconds(1), now_));
  Ready(1, execution);
  EXPECT_EQ(Next(), "write 1, read");
  EXPECT_FALSE(state_.IsUnread(absl::Seconds(1), now_ + absl::Milliseconds(999)));
  EXPECT_TRUE(state_.IsUnread(absl::Seconds(1), now_ + absl::Seconds(1)));
  state_.Fail(absl::CancelledError("gone"));  // the write is still in flight
  EXPECT_TRUE(state_.IsUnread(absl::Seconds(1), now_ + absl::Seconds(1)));
  state_.WriteDone();
  EXPECT_FALSE(state_.IsUnread(absl::Seconds(1), now_ + absl::Seconds(9)));
}

}  // namespace
}  // namespace opmill::oip
