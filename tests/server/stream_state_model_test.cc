// Streams of random events, in every order that a call can meet: what must hold at each step, and
// at the end.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/stream_state.h"
#include "tests/server/any_execution.h"

namespace opmill {
namespace {

using Work = StreamState::Work;
using Written = StreamState::Written;

constexpr uint32_t kMaxExecutions = 3;
constexpr uint64_t kIds = 5;  // few, so that they are often begun again
constexpr int kMessages = 40;

// The transport, the thread that handles messages, the executor and its other threads, around one
// state. Each event is a step of one of them.
class Call {
 public:
  explicit Call(uint32_t seed) : random_(seed) {}

  void Run() {
    Advance();
    for (int i = 0; i < 10000 && messages_ < kMessages && !finish_.has_value(); ++i) {
      const int event = Below(100);
      if (event == 0 && OneIn(8)) {
        Fail(absl::CancelledError("gone"));
      } else if (event == 1 && OneIn(4)) {
        drained_ = true;
        state_.Drain();
      } else {
        Step();
      }
      Advance();
    }
    // What is under way comes to its end, in any order.
    half_closes_ = true;
    for (int i = 0; i < 10000 && !finish_.has_value(); ++i) {
      Step();
      Advance();
    }
    ASSERT_TRUE(finish_.has_value()) << "the stream hangs";
    Check();
  }

 private:
  struct Running {
    std::shared_ptr<Execution> execution;
    uint64_t id = 0;
    bool uploaded = false;
    bool streams = false;  // Ready has come
    bool gone = false;     // it has ended; unless it streams, Ended has not come
    int messages = 1;      // of results that are left
  };

  int Below(int limit) { return std::uniform_int_distribution<>(0, limit - 1)(random_); }
  bool OneIn(int count) { return Below(count) == 0; }

  void Step() {
    switch (Below(5)) {
      case 0:
        Deliver();
        break;
      case 1:
        if (writing_) EndWrite();
        break;
      case 2:
        if (next_step_ != nullptr) std::exchange(next_step_, nullptr)();
        break;
      case 3:
        if (timer_set_ && OneIn(4)) {
          timer_set_ = false;
          state_.RetryLater();
        }
        break;
      default:
        Progress();
        break;
    }
  }

  void Advance() {
    StreamState::Actions actions = state_.Advance(OneIn(2));
    EXPECT_LE(state_.open().size(), kMaxExecutions);
    if (actions.write.has_value()) Write(*std::move(actions.write));
    if (actions.finish.has_value()) {
      EXPECT_FALSE(finish_.has_value()) << "the second finish";
      EXPECT_FALSE(writing_);
      EXPECT_FALSE(handles_);
      EXPECT_TRUE(actions.work == Work::kNone && !actions.read);
      finish_ = actions.finish;
    }
    if (actions.work != Work::kNone) {
      EXPECT_FALSE(handles_) << "two messages at a time";
      EXPECT_EQ(actions.work == Work::kWaitingBegin, waiting_id_.has_value());
      handles_ = true;
      if (actions.work == Work::kMessage) {
        EXPECT_TRUE(std::exchange(arrived_, false));
        next_step_ = [this] { Handle(); };
      } else if (actions.work == Work::kWaitingBegin) {
        next_step_ = [this, id = *waiting_id_] { TryBegin(id); };
      } else {
        EXPECT_TRUE(half_closed_);
        next_step_ = [this] { EndInputs(); };
      }
    }
    if (actions.read) {
      EXPECT_FALSE(reading_ || arrived_ || half_closed_ || finish_.has_value());
      reading_ = true;
    }
  }

  // The transport.
  void Deliver() {
    if (!reading_) return;
    reading_ = false;
    if (half_closes_) {
      half_closed_ = true;
    } else {
      arrived_ = true;
      ++messages_;
    }
    state_.ReadDone(!half_closes_);
  }

  void Write(StreamState::Reply reply) {
    EXPECT_FALSE(writing_ || finish_.has_value());
    writing_ = true;
    Written written = Written::kError;
    if (reply.execution != nullptr) {
      Running& running = *FindRunning(*reply.execution);
      EXPECT_TRUE(running.streams);
      if (!running.gone) written = --running.messages > 0 ? Written::kMore : Written::kLast;
      if (written != Written::kMore) Remove(*reply.execution);
    }
    if (written != Written::kMore) --ends_due_[reply.id];
    EXPECT_GE(ends_due_[reply.id], 0) << "an end too many for " << reply.id;
    state_.WriteStarted(std::move(reply), written, now_);
  }

  void EndWrite() {
    writing_ = false;
    state_.WriteDone();
    if (OneIn(500)) Fail(absl::CancelledError("gone"));
  }

  void Fail(const absl::Status& why) {
    failed_ = true;
    for (const auto& execution : state_.Fail(why)) Cancel(*execution);
  }

  // The thread that handles a message.
  void Handle() {
    const uint64_t id = Below(kIds);
    const int kind = Below(10);
    if (kind < 6) {
      TryBegin(id);
    } else if (kind == 6) {
      Refuse(id, true);
    } else if (const auto execution = state_.Find(id); execution != nullptr) {
      if (kind == 7) Cancel(*execution);
      if (kind > 7 && FindRunning(*execution)) FindRunning(*execution)->uploaded = true;
      Handled();
    } else if (!state_.IsAbandoned(id)) {
      Refuse(id, false);
    } else {
      Handled();
    }
  }

  void TryBegin(uint64_t id) {
    if (const auto twin = state_.Find(id); twin != nullptr) {
      Cancel(*twin);
      next_step_ = [this, id, twin] {
        state_.BegunAgain(id, twin);
        Handled();
      };
      return;
    }
    const StreamState::Room room = state_.RoomFor(id);
    if (room == StreamState::Room::kStreamEnds) {
      Handled();
    } else if (room == StreamState::Room::kFull || OneIn(5)) {
      next_step_ = [this, id] { WaitOrRefuse(id); };
    } else {
      const auto execution = AnyExecution();
      all_.push_back(execution);
      running_.push_back({.execution = execution, .id = id, .messages = 1 + Below(3)});
      ++ends_due_[id];
      if (OneIn(4)) Cancel(*execution);  // by its deadline
      next_step_ = [this, id, execution] {
        const Running* const running = FindRunning(*execution);
        const bool has_ended = running == nullptr || running->gone;
        if (!state_.Begun(id, execution, has_ended)) Cancel(*execution);
        begun_.insert(execution.get());
        Handled();
      };
    }
  }

  void WaitOrRefuse(uint64_t id) {
    bool progresses = false;
    for (const auto& execution : state_.open()) {
      const Running* const running = FindRunning(*execution);
      progresses |= running == nullptr || running->uploaded;
    }
    now_ += absl::Milliseconds(Below(500));
    if (state_.MayWait(progresses, now_)) {
      waiting_id_ = id;
      handles_ = false;
      if (state_.MessageWaits()) {
        EXPECT_FALSE(std::exchange(timer_set_, true));
      }
    } else {
      Refuse(id, true);
    }
  }

  void Refuse(uint64_t id, bool input_may_follow) {
    if (!finish_.has_value()) ++ends_due_[id];
    state_.Refused(id, absl::InternalError("refused"), input_may_follow);
    Handled();
  }

  void Handled() {
    waiting_id_.reset();
    handles_ = false;
    state_.MessageHandled(now_);
  }

  void EndInputs() {
    for (const auto& execution : state_.open()) {
      if (Running* running = FindRunning(*execution); !running->uploaded) Cancel(*execution);
    }
    handles_ = false;
    state_.HalfCloseHandled();
  }

  // The executor. Its other threads tell of an end later.
  void Cancel(const Execution& execution) {
    if (Running* const running = FindRunning(execution)) running->gone = true;
  }

  void Progress() {
    if (running_.empty()) return;
    Running& running = running_[Below(static_cast<int>(running_.size()))];
    if (running.streams) return;
    if (running.gone) {
      const Running ended = running;
      Remove(*ended.execution);
      state_.Ended(ended.id, *ended.execution, absl::InternalError("ended"), !ended.uploaded);
    } else if (!begun_.contains(running.execution.get())) {
      return;  // no input can have come
    } else if (!running.uploaded) {
      running.uploaded = OneIn(3);
    } else if (OneIn(8)) {
      running.gone = true;
    } else {
      running.streams = true;
      state_.Ready(running.id, running.execution);
    }
  }

  Running* FindRunning(const Execution& execution) {
    for (Running& each : running_) {
      if (each.execution.get() == &execution) return &each;
    }
    return nullptr;
  }

  void Remove(const Execution& execution) {
    std::erase_if(running_, [&](const auto& each) { return each.execution.get() == &execution; });
  }

  void Check() {
    if (!failed_) {
      EXPECT_EQ(finish_->ok(), half_closed_) << *finish_;
      EXPECT_TRUE(finish_->ok() || (drained_ && absl::IsUnavailable(*finish_))) << *finish_;
      EXPECT_TRUE(running_.empty());
      for (const auto& [id, due] : ends_due_) EXPECT_EQ(due, 0) << "ends of " << id;
    }
    state_.Close();
    next_step_ = nullptr;
    running_.clear();
    for (const auto& execution : all_) EXPECT_EQ(execution.use_count(), 1);
  }

  std::mt19937 random_;
  absl::Time now_ = absl::UnixEpoch();
  StreamState state_{kMaxExecutions};

  int messages_ = 0;  // delivered
  bool half_closes_ = false;
  bool half_closed_ = false;
  bool reading_ = false;
  bool arrived_ = false;
  bool writing_ = false;
  bool drained_ = false;
  bool failed_ = false;
  std::optional<absl::Status> finish_;

  bool handles_ = false;
  std::function<void()> next_step_;  // of the thread that handles
  std::optional<uint64_t> waiting_id_;
  bool timer_set_ = false;

  std::vector<Running> running_;
  std::set<const Execution*> begun_;
  std::vector<std::shared_ptr<Execution>> all_;
  std::map<uint64_t, int> ends_due_;  // by id
};

TEST(StreamStateModel, HoldsForRandomEvents) {
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Call(seed).Run();
    if (testing::Test::HasFailure()) return;  // the first is enough
  }
}

}  // namespace
}  // namespace opmill
