// How executions and streams end early, on the wire.
#include <signal.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/end_to_end/stream_fixture.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

enum class Where { kUploading, kQueued, kRunning, kStreaming };
constexpr Where kAll[] = {Where::kUploading, Where::kQueued, Where::kRunning, Where::kStreaming};
constexpr uint64_t kId = 7;

class StreamEnd : public StreamTest {
 protected:
  // A server whose operators have been compiled.
  void SetUp() override {
    StartServer();
    for (const v1::OperatorDesc& desc : {SlowSum(), Streamed(), SumOf(5)}) {
      grpc::ClientContext context;
      v1::CompileOperatorRequest request;
      v1::CompileOperatorResponse response;
      *request.mutable_operator_() = desc;
      ASSERT_TRUE(stub().CompileOperator(&context, request, &response).ok());
    }
  }

  // Begins execution kId on `caller`, and waits until it has reached the stage; false if it has not
  // by `until`, or has ended.
  bool Reach(Where where, StreamCaller& caller, absl::Duration timeout = absl::InfiniteDuration(),
             absl::Time until = absl::InfiniteFuture()) {
    const auto begin = [&](const v1::OperatorDesc& desc, std::optional<uint64_t> bytes) {
      const bool begun = caller.Begin(kId, desc, bytes, timeout);
      EXPECT_TRUE(begun || absl::Now() > until);
      return begun;
    };
    switch (where) {
      case Where::kUploading:
        return begin(SumOf(1000), 100) &&
               Wait([](const v1::InFlight& now) { return now.uploading() == 1; }, until);
      case Where::kQueued:  // behind another large execution
        blocker_.emplace(stub());
        EXPECT_TRUE(blocker_->Begin(1, SlowSum()));
        Wait([](const v1::InFlight& now) { return now.running() == 1; });
        return begin(SlowSum(), std::nullopt) &&
               Wait([](const v1::InFlight& now) { return now.queued() == 1; }, until);
      case Where::kRunning:
        return begin(SlowSum(), std::nullopt) &&
               Wait([](const v1::InFlight& now) { return now.running() == 1; }, until);
      case Where::kStreaming:  // to a caller that does not read
        return begin(Streamed(), std::nullopt) &&
               Wait([](const v1::InFlight& now) { return now.streaming() == 1; }, until);
    }
    return false;
  }

  // Calls `attempt` with a timeout for the execution, and again with a longer one if the execution
  // did not reach its stage in time: that depends on the machine.
  static void WithinATime(const std::function<bool(absl::Duration)>& attempt) {
    absl::Duration time = absl::Milliseconds(900);
    while (!attempt(time)) {
      time *= 2;
      ASSERT_LE(time, kPatience);
    }
  }

  // Returns false if the condition is not true by `until`.
  bool Wait(const std::function<bool(const v1::InFlight&)>& condition,
            absl::Time until = absl::InfiniteFuture()) {
    bool is_so = false;
    WaitForStatistics([&](const v1::GetStatisticsResponse& statistics) {
      is_so = condition(statistics.in_flight());
      return is_so || absl::Now() > until;
    });
    return is_so;
  }

  static v1::OperatorDesc Streamed() { return HardmaxOf(8 << 20); }

  std::optional<StreamCaller> blocker_;
};

TEST_F(StreamEnd, CancelExecutionEndsItWhereverItIs) {
  for (const Where where : kAll) {
    SCOPED_TRACE(static_cast<int>(where));
    StreamCaller caller(stub());
    Reach(where, caller);
    const absl::Time cancelled = absl::Now();
    caller.Cancel(kId);
    const v1::ExecuteStreamResponse end = caller.ReadEnd();
    EXPECT_LT(absl::Now() - cancelled, absl::Seconds(10));
    EXPECT_EQ(end.execution_id(), kId);
    EXPECT_EQ(end.status().code(), grpc::StatusCode::CANCELLED) << end.ShortDebugString();
    EXPECT_EQ(end.status().message(), "The caller cancelled the execution.");
    // The id is free again, and the stream continues.
    caller.Cancel(kId);
    caller.Begin(kId, SumOf(5));
    EXPECT_TRUE(caller.ReadEnd().has_statistics());
    caller.WritesDone();
    EXPECT_TRUE(caller.Finish().ok());
    blocker_.reset();
    WaitUntilIdle();
  }
}

TEST_F(StreamEnd, ATimeoutEndsItWhereverItIs) {
  for (const Where where : kAll) {
    SCOPED_TRACE(static_cast<int>(where));
    WithinATime([&](absl::Duration timeout) {
      StreamCaller caller(stub());
      const absl::Time begun = absl::Now();
      const bool reached = Reach(where, caller, timeout, begun + timeout);
      if (where == Where::kStreaming) absl::SleepFor(timeout);
      const v1::ExecuteStreamResponse end = caller.ReadEnd();
      EXPECT_GE(absl::Now() - begun, timeout);
      EXPECT_EQ(end.status().code(), grpc::StatusCode::DEADLINE_EXCEEDED) << end.ShortDebugString();
      EXPECT_EQ(end.status().message(), "The execution's time is over.");
      caller.WritesDone();
      EXPECT_TRUE(caller.Finish().ok());
      blocker_.reset();
      WaitUntilIdle();
      return reached;
    });
  }
}

TEST_F(StreamEnd, TheDeadlineOfTheCallEndsAllOfIt) {
  for (const Where where : kAll) {
    SCOPED_TRACE(static_cast<int>(where));
    WithinATime([&](absl::Duration time) {
      const absl::Time begun = absl::Now();
      StreamCaller caller(stub(), time);
      const bool reached = Reach(where, caller, absl::InfiniteDuration(), begun + time);
      absl::SleepFor(begun + time + absl::Milliseconds(100) - absl::Now());
      EXPECT_EQ(caller.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      blocker_.reset();
      WaitUntilIdle();
      return reached;
    });
  }
  EXPECT_GT(Statistics().operators(0).cancelled(), 0u);
}

TEST_F(StreamEnd, ACallThatIsCancelledLeavesNothing) {
  for (const Where where : kAll) {
    SCOPED_TRACE(static_cast<int>(where));
    StreamCaller caller(stub());
    Reach(where, caller);
    caller.TryCancel();
    EXPECT_EQ(caller.Finish().error_code(), grpc::StatusCode::CANCELLED);
    blocker_.reset();
    WaitUntilIdle();
  }
}

TEST_F(StreamEnd, HalfCloseFinishesCompleteInputsAndRefusesOthers) {
  StreamCaller caller(stub());
  caller.Begin(1, SumOf(1000), 100);
  caller.Begin(2, SlowSum());
  caller.WritesDone();
  const v1::ExecuteStreamResponse refused = caller.ReadEnd();
  EXPECT_EQ(refused.execution_id(), 1u);
  EXPECT_EQ(refused.status().message(),
            "The stream was half-closed with 100 of the 4000 bytes of input 0; 3900 are missing.");
  EXPECT_EQ(FieldOf(refused.status()), "chunks");
  const v1::ExecuteStreamResponse complete = caller.ReadEnd();
  EXPECT_EQ(complete.execution_id(), 2u);
  EXPECT_TRUE(complete.has_statistics());
  EXPECT_TRUE(caller.Finish().ok());
}

// Some end while they begin, some while their input arrives: each has exactly one end.
TEST_F(StreamEnd, ATimeoutAtAnyMomentOfTheUploadIsTheOnlyEnd) {
  StreamCaller caller(stub());
  constexpr int kExecutions = 400;
  for (int id = 0; id < kExecutions; ++id) {
    ASSERT_TRUE(caller.Begin(id, SumOf(1000), 100, absl::Microseconds(1 + id)));
    ASSERT_TRUE(caller.SendZeros(id, 100, 1900));
    ASSERT_TRUE(caller.SendZeros(id, 2000, 2000));
  }
  caller.WritesDone();
  int ends = 0;
  while (const std::optional<v1::ExecuteStreamResponse> response = caller.Read()) {
    if (response->has_status()) {
      EXPECT_EQ(response->status().code(), grpc::StatusCode::DEADLINE_EXCEEDED)
          << response->status().message();
    }
    ends += response->has_statistics() || response->has_status();
  }
  EXPECT_EQ(ends, kExecutions);
  EXPECT_TRUE(caller.Finish().ok());
}

// The execution may have ended before a redundant message arrives.
TEST_F(StreamEnd, RedundantMessagesAfterTheLastByteAreIgnored) {
  StreamCaller caller(stub());
  for (uint64_t id = 0; id < 100; ++id) {
    ASSERT_TRUE(caller.Begin(id, SumOf(5)));
    v1::ExecuteStreamRequest end;
    end.set_execution_id(id);
    end.set_end_of_inputs(true);
    ASSERT_TRUE(caller.Write(end));
    end.set_end_of_inputs(false);
    ASSERT_TRUE(caller.Write(end));
  }
  caller.WritesDone();
  int ends = 0;
  while (const std::optional<v1::ExecuteStreamResponse> response = caller.Read()) {
    EXPECT_FALSE(response->has_status()) << response->status().message();
    ends += response->has_statistics();
  }
  EXPECT_EQ(ends, 100);
  EXPECT_TRUE(caller.Finish().ok());
}

TEST_F(StreamEnd, ADuplicateIdIsRefusedOnceAndIsFreeAfterwards) {
  StreamCaller caller(stub());
  caller.Begin(kId, SumOf(1000), 100);
  caller.Begin(kId, SumOf(5));
  const v1::ExecuteStreamResponse refused = caller.ReadEnd();
  EXPECT_EQ(FieldOf(refused.status()), "execution_id");
  EXPECT_EQ(refused.status().message(),
            "execution_id (7) is open on this stream already; neither of the two is computed.");
  caller.Begin(kId, SumOf(5));
  EXPECT_TRUE(caller.ReadEnd().has_statistics());
  caller.WritesDone();
  EXPECT_TRUE(caller.Finish().ok());
}

// The second begin ends the first execution while its results wait to be written; the third starts
// another execution with the same id before that.
TEST_F(StreamEnd, AnIdThatIsBegunThreeTimesIsTracked) {
  StreamCaller caller(stub());
  caller.Begin(1, Streamed());  // fills the connection
  Wait([](const v1::InFlight& now) { return now.streaming() == 1; });
  caller.Begin(kId, SumOf(5));
  Wait([](const v1::InFlight& now) { return now.streaming() == 2; });
  caller.Begin(kId, SumOf(5));
  caller.Begin(kId, SumOf(5), 8);
  Wait([](const v1::InFlight& now) { return now.uploading() == 1; });
  const auto ends = [&caller](uint64_t id) {
    while (true) {
      const v1::ExecuteStreamResponse end = caller.ReadEnd();
      if (end.execution_id() == id) return end;
    }
  };
  EXPECT_EQ(FieldOf(ends(kId).status()), "execution_id");
  caller.SendZeros(kId, 8, 12);
  EXPECT_TRUE(ends(kId).has_statistics());
  caller.WritesDone();
  EXPECT_TRUE(caller.Finish().ok());
}

TEST_F(StreamEnd, DrainingFinishesExecutionsAndThenTheStream) {
  StreamCaller caller(stub());
  StreamCaller idle(stub());
  idle.Begin(1, SumOf(5));
  idle.ReadEnd();
  Reach(Where::kUploading, caller);
  server().Signal(SIGTERM);
  ASSERT_TRUE(server().WaitForLine(R"("event":"draining")").has_value());
  const grpc::Status idle_end = idle.Finish();
  EXPECT_EQ(idle_end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(idle_end.error_message(),
            "The server is draining, and the stream has nothing under way.");
  caller.Begin(kId + 1, SumOf(5));
  const v1::ExecuteStreamResponse refused = caller.ReadEnd();
  EXPECT_EQ(refused.execution_id(), kId + 1);
  EXPECT_EQ(refused.status().code(), grpc::StatusCode::UNAVAILABLE);
  caller.SendZeros(kId, 100, 3900);
  const v1::ExecuteStreamResponse end = caller.ReadEnd();
  EXPECT_EQ(end.execution_id(), kId);
  EXPECT_TRUE(end.has_statistics()) << end.ShortDebugString();
  EXPECT_EQ(caller.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server().WaitForExit(), 0);
}

TEST_F(StreamEnd, DrainingPastItsTimeoutAbortsTheRest) {
  for (const Where where : {Where::kUploading, Where::kRunning, Where::kStreaming}) {
    SCOPED_TRACE(static_cast<int>(where));
    StartServer({"--drain_timeout=500ms"});
    StreamCaller caller(stub());
    Reach(where, caller);
    const absl::Time start = absl::Now();
    server().Signal(SIGTERM);
    EXPECT_EQ(server().WaitForExit(), 1);
    std::printf("cut at stage %d: exit after %s\n", static_cast<int>(where),
                absl::FormatDuration(absl::Now() - start).c_str());
    EXPECT_GE(absl::Now() - start, absl::Milliseconds(500));
    // A run on the device cannot be interrupted; a caller that does not read can.
    EXPECT_LT(absl::Now() - start, absl::Seconds(where == Where::kRunning ? 30 : 15));
    const grpc::Status end = caller.Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE) << end.error_message();
    if (where != Where::kStreaming) {
      EXPECT_EQ(end.error_message(), "The server stopped before the execution ended.");
    }
    const auto stopped = server().WaitForLine(R"("event":"stopped")");
    ASSERT_TRUE(stopped.has_value());
    EXPECT_THAT(*stopped,
                HasSubstr("The drain timeout (500ms) passed with 1 executions under way."));
  }
}

}  // namespace
}  // namespace opmill
