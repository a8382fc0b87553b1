// A stream's state, and a test that carries out its actions as a call does.
#ifndef OPMILL_TESTS_SERVER_STREAM_STATE_FIXTURE_H_
#define OPMILL_TESTS_SERVER_STREAM_STATE_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/api/stream_state.h"
#include "tests/server/any_execution.h"

namespace opmill {

class StreamStateTest : public testing::Test {
 protected:
  static constexpr bool kInputMayFollow = true;
  static constexpr bool kNoInputFollows = false;
  static constexpr char kDrained[] =
      "finish: The server is draining, and the stream has nothing under way.";

  static absl::Status Error(absl::string_view why) { return absl::InternalError(why); }

  // "write 7", "write the last of 7", "write an error of 7: why"; "finish: status"; "handle a
  // message", "try the begin", "end the inputs"; "read". Empty for nothing.
  std::string Next(bool reads_ahead = true) {
    StreamState::Actions actions = state_.Advance(reads_ahead);
    std::vector<std::string> done;
    if (actions.write.has_value()) done.push_back(Write(*std::move(actions.write)));
    if (actions.finish.has_value()) done.push_back(absl::StrCat("finish: ", Text(*actions.finish)));
    if (actions.work == StreamState::Work::kMessage) done.push_back("handle a message");
    if (actions.work == StreamState::Work::kWaitingBegin) done.push_back("try the begin");
    if (actions.work == StreamState::Work::kHalfClose) done.push_back("end the inputs");
    if (actions.read) done.push_back("read");
    return absl::StrJoin(done, ", ");
  }
  std::string NextAfterWrite() {
    complete_ = state_.WriteDone();
    return Next();
  }

  // A message has arrived and is being handled.
  void Receive() {
    StartReading();
    state_.ReadDone(true);
    EXPECT_EQ(Next(), "handle a message, read");
  }
  std::shared_ptr<Execution> Begin(uint64_t id) {
    Receive();
    EXPECT_EQ(state_.RoomFor(id), StreamState::Room::kFree);
    std::shared_ptr<Execution> execution = AnyExecution();
    EXPECT_TRUE(state_.Begun(id, execution, false));
    Handled();
    return execution;
  }
  void Refuse(uint64_t id, bool input_may_follow) {
    Receive();
    state_.Refused(id, absl::InternalError("refused"), input_may_follow);
    Handled();
  }
  void Handled() { state_.MessageHandled(now_); }
  void HalfClose() {
    StartReading();
    state_.ReadDone(false);
    EXPECT_EQ(Next(), "end the inputs");
    state_.HalfCloseHandled();
  }
  // The execution has results, in this many messages.
  void Ready(uint64_t id, const std::shared_ptr<Execution>& execution, int messages = 1) {
    messages_[execution.get()] = messages;
    state_.Ready(id, execution);
  }
  void Fail(const absl::Status& why) { cancelled_ = state_.Fail(why); }

  static std::string Text(const absl::Status& status) {
    return status.ok() ? "OK" : std::string(status.message());
  }

  StreamState state_{3};
  absl::Time now_ = absl::UnixEpoch();
  std::map<const Execution*, int> messages_;  // the rest of its results; 0: it has ended
  std::shared_ptr<Execution> complete_;       // by the last WriteDone
  StreamState::Executions cancelled_;         // by the last Fail

 private:
  // Unless it has been read ahead.
  void StartReading() {
    if (std::exchange(reads_, true)) return;
    EXPECT_EQ(Next(), "read");
  }

  std::string Write(StreamState::Reply reply) {
    const uint64_t id = reply.id;
    if (reply.execution == nullptr) {
      const std::string why = Text(reply.error);
      state_.WriteStarted(std::move(reply), StreamState::Written::kError, now_);
      return absl::StrCat("write an error of ", id, ": ", why);
    }
    int& messages = messages_[reply.execution.get()];
    if (messages == 0) {
      state_.WriteStarted(std::move(reply), StreamState::Written::kError, now_);
      return absl::StrCat("write the end of ", id);
    }
    EXPECT_EQ(reply.position.started, reply.position.output > 0);
    reply.position = {.started = true, .output = reply.position.output + 1};
    const StreamState::Written written =
        --messages == 0 ? StreamState::Written::kLast : StreamState::Written::kMore;
    state_.WriteStarted(std::move(reply), written, now_);
    return absl::StrCat(written == StreamState::Written::kLast ? "write the last of " : "write ",
                        id);
  }

  bool reads_ = false;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SERVER_STREAM_STATE_FIXTURE_H_
