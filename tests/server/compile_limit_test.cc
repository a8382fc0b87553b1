#include "server/models/compile_limit.h"

#include <memory>
#include <stop_token>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/base/steady_time.h"

namespace opmill {
namespace {

using Made = absl::StatusOr<int>;

// Work of that duration, unless it is stopped.
auto Lasting(absl::Duration duration) {
  return [duration](const std::stop_token& abandoned) -> Made {
    for (const absl::Time end = SteadyNow() + duration; SteadyNow() < end;) {
      RETURN_IF_ERROR(CheckAbandoned(abandoned));
      absl::SleepFor(absl::Milliseconds(1));
    }
    return 7;
  };
}

TEST(CompileLimit, StopsWorkThatTakesLonger) {
  DeadlineTimer timer;
  const CompileLimit limit(timer, absl::Milliseconds(100));
  const absl::Time begun = SteadyNow();
  const Made made = limit.Run({.model = "big version 2"}, Lasting(absl::Minutes(1)));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(made.status().message(),
            "Compiling the model big version 2 takes more than 100ms (max_model_compile_time).");
  EXPECT_TRUE(TookTooLong(made.status()));
  EXPECT_GE(SteadyNow() - begun, absl::Milliseconds(100));
  EXPECT_EQ(limit.Run({.model = "small"}, Lasting(absl::ZeroDuration())).value(), 7);
}

TEST(CompileLimit, CountsWhatWasSpentBefore) {
  DeadlineTimer timer;
  const CompileLimit limit(timer, absl::Minutes(1));
  const LimitedProgram late = {.model = "big", .spent = absl::Minutes(2)};
  EXPECT_TRUE(TookTooLong(limit.Run(late, Lasting(absl::Minutes(1))).status()));
}

TEST(CompileLimit, IsOfModelsOnly) {
  DeadlineTimer timer;
  const CompileLimit limit(timer, absl::Milliseconds(1));
  EXPECT_EQ(limit.Run({}, Lasting(absl::Milliseconds(50))).value(), 7);
  EXPECT_TRUE(LimitedProgram::Of(static_cast<const RequestedModel*>(nullptr)).model.empty());
  const CompileLimit none(timer, absl::InfiniteDuration());
  EXPECT_EQ(none.Run({.model = "big"}, Lasting(absl::Milliseconds(50))).value(), 7);
}

TEST(CompileLimit, WorkThatIsAbandonedIsNotLate) {
  DeadlineTimer timer;
  const CompileLimit limit(timer, absl::Minutes(1));
  std::stop_source abandoned;
  abandoned.request_stop();
  const Made made = limit.Run({.model = "big"}, abandoned, Lasting(absl::Minutes(1)));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(TookTooLong(made.status()));
}

TEST(CompileLimit, WhatNoCallerWaitsForEndsWithTheServer) {
  DeadlineTimer timer;
  CompileLimit limit(timer, absl::InfiniteDuration());
  std::thread stops([&limit] {
    absl::SleepFor(absl::Milliseconds(20));
    limit.StopBackground();
  });
  const auto lasting = Lasting(absl::Minutes(1));
  EXPECT_EQ(limit.Run({.model = "big"}, lasting).status(), CompileLimit::ServerStops());
  stops.join();
  EXPECT_EQ(limit.Run({.model = "next"}, lasting).status(), CompileLimit::ServerStops());
  // A caller's work goes on.
  const auto brief = Lasting(absl::Milliseconds(5));
  EXPECT_EQ(limit.Run({.model = "big"}, std::stop_source(), brief).value(), 7);
}

TEST(CompileLimit, WorkThatEndsJustAfterTheLimitCounts) {
  DeadlineTimer timer;
  const CompileLimit limit(timer, absl::Milliseconds(1));
  const auto does_not_look = [](const std::stop_token&) -> Made {
    absl::SleepFor(absl::Milliseconds(50));
    return 7;
  };
  EXPECT_EQ(limit.Run({.model = "big"}, does_not_look).value(), 7);
}

}  // namespace
}  // namespace opmill
