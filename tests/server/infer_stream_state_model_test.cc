// Streams of random events, in every order that a call can meet: what must hold at each step, and
// at the end.
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/oip/infer_request.h"
#include "server/oip/infer_stream_state.h"
#include "tests/server/any_execution.h"

namespace opmill::oip {
namespace {

constexpr uint32_t kMaxRequests = 3;
constexpr size_t kRequests = 30;

// The transport, the thread that handles requests, and the executor, around one state. Each event
// is a step of one of them.
class Call {
 public:
  explicit Call(uint32_t seed) : random_(seed) {}

  void Run() {
    Advance();
    for (int i = 0; i < 10000 && !finish_.has_value(); ++i) {
      const int event = Below(200);
      if (event == 0 && OneIn(4)) {
        Fail(absl::CancelledError("gone"));
      } else if (event == 1 && OneIn(2)) {
        drained_ = true;
        state_.Drain();
      } else {
        Step();
      }
      Advance();
    }
    ASSERT_TRUE(finish_.has_value()) << "the stream hangs";
    Check();
  }

 private:
  enum class Stage { kHandling, kRunning, kReady, kAnswered };
  struct Request {
    std::shared_ptr<InferRequest> request = std::make_shared<InferRequest>();
    std::shared_ptr<Execution> execution;  // null: it is refused
    Stage stage = Stage::kHandling;
    bool is_cancelled = false;
  };

  int Below(int limit) { return std::uniform_int_distribution<>(0, limit - 1)(random_); }
  bool OneIn(int count) { return Below(count) == 0; }

  void Step() {
    switch (Below(4)) {
      case 0:
        if (reading_) Deliver();
        break;
      case 1:
        if (writing_) EndWrite();
        break;
      case 2:
        if (handling_) Handle();
        break;
      default:
        MakeOneReady();
        break;
    }
  }

  void Advance() {
    const InferStreamState::Actions actions = state_.Advance(absl::UnixEpoch());
    if (actions.write.has_value()) Write(*actions.write);
    if (actions.finish.has_value()) {
      EXPECT_FALSE(finish_.has_value()) << "the second finish";
      EXPECT_FALSE(writing_ || handling_ || actions.read);
      finish_ = actions.finish;
    }
    if (actions.read) {
      EXPECT_FALSE(reading_ || handling_ || half_closed_ || failed_ || finish_.has_value());
      EXPECT_LT(requests_.size() - answered_, kMaxRequests);
      reading_ = true;
    }
  }

  // The transport.
  void Deliver() {
    reading_ = false;
    if (requests_.size() == kRequests || OneIn(100)) {
      half_closed_ = true;
      state_.HalfClosed();
      return;
    }
    Request request;
    const std::optional<uint64_t> number = state_.RequestRead(request.request);
    EXPECT_EQ(number.has_value(), !failed_ && !finish_.has_value());
    if (!number.has_value()) return;
    EXPECT_EQ(*number, requests_.size() + 1);
    requests_.push_back(std::move(request));
    handling_ = true;
  }

  void Write(const InferStreamState::Answer& answer) {
    EXPECT_FALSE(writing_ || failed_ || finish_.has_value());
    writing_ = true;
    ASSERT_LT(answered_, requests_.size());
    Request& request = requests_[answered_++];  // in their order
    EXPECT_EQ(request.request, answer.request);
    EXPECT_EQ(request.execution, answer.execution);
    EXPECT_EQ(request.stage, Stage::kReady);
    EXPECT_EQ(answer.error.ok(), request.execution != nullptr && !request.is_cancelled);
    request.stage = Stage::kAnswered;
  }

  void EndWrite() {
    writing_ = false;
    EXPECT_EQ(state_.WriteDone(), requests_[answered_ - 1].execution);
    if (OneIn(200)) Fail(absl::CancelledError("gone"));
  }

  void Fail(const absl::Status& why) {
    failed_ = true;
    for (const auto& execution : state_.Fail(why)) Cancel(*execution);
  }

  // The thread that handles a request, in two steps: it creates the execution, then reports it.
  void Handle() {
    Request& request = requests_.back();
    if (request.execution == nullptr) {
      if (OneIn(5)) {
        MakeReady(request);
        Handled();
      } else {
        request.execution = AnyExecution();
        request.stage = Stage::kRunning;
      }
      return;
    }
    if (!state_.Begun(requests_.size(), request.execution).ok()) {
      EXPECT_TRUE(failed_);
      Cancel(*request.execution);
    }
    Handled();
  }

  void Handled() {
    handling_ = false;
    state_.RequestHandled();
  }

  // The executor.
  void Cancel(const Execution& execution) {
    for (Request& request : requests_) {
      if (request.execution.get() == &execution && request.stage == Stage::kRunning) {
        request.is_cancelled = true;
      }
    }
  }

  void MakeOneReady() {
    if (requests_.empty()) return;
    Request& request = requests_[Below(static_cast<int>(requests_.size()))];
    if (request.stage == Stage::kRunning) MakeReady(request);
  }

  void MakeReady(Request& request) {
    request.stage = Stage::kReady;
    const bool succeeds = request.execution != nullptr && !request.is_cancelled;
    state_.Ready(static_cast<uint64_t>(&request - requests_.data()) + 1, request.execution,
                 succeeds ? absl::OkStatus() : absl::InternalError("failed"));
  }

  void Check() {
    if (!failed_) {
      EXPECT_EQ(answered_, requests_.size());
      EXPECT_EQ(finish_->ok(), half_closed_) << *finish_;
      EXPECT_TRUE(finish_->ok() || (drained_ && absl::IsUnavailable(*finish_))) << *finish_;
    }
    for (const auto& execution : state_.Close()) Cancel(*execution);
    for (size_t i = 0; i < requests_.size(); ++i) {
      Request& request = requests_[i];
      if (request.stage != Stage::kRunning) continue;
      EXPECT_TRUE(request.is_cancelled) << "nothing ends the execution of request " << i + 1;
      MakeReady(request);  // another thread is late
    }
    Advance();
    for (const Request& request : requests_) {
      EXPECT_EQ(request.request.use_count(), 1);
      EXPECT_LE(request.execution.use_count(), 1);
    }
  }

  std::mt19937 random_;
  InferStreamState state_{kMaxRequests};
  std::vector<Request> requests_;
  size_t answered_ = 0;

  bool reading_ = false;
  bool handling_ = false;
  bool half_closed_ = false;
  bool writing_ = false;
  bool drained_ = false;
  bool failed_ = false;
  std::optional<absl::Status> finish_;
};

TEST(InferStreamStateModel, HoldsForRandomEvents) {
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Call(seed).Run();
    if (testing::Test::HasFailure()) return;  // the first is enough
  }
}

}  // namespace
}  // namespace opmill::oip
