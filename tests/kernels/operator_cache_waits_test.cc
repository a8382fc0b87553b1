// Callers that wait for a compilation, and that leave.
#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/steady_time.h"
#include "kernels/engine/operator_cache.h"
#include "tests/kernels/counting_device.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(OperatorCache, CompilesOnceForConcurrentCallers) {
  constexpr int kCallers = 32;
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 64});
  // The compilation continues until all other callers are waiting.
  device.on_compile = [&cache](int) {
    while (cache->statistics().waits < kCallers - 1) absl::SleepFor(absl::Milliseconds(1));
    return absl::OkStatus();
  };
  std::vector<CachedOperator> answers(kCallers);
  std::vector<std::thread> callers;
  for (CachedOperator& answer : answers) {
    callers.emplace_back([&cache, &answer] {
      const auto found = cache->Get(SumOf(9));
      ASSERT_TRUE(found.ok()) << found.status();
      answer = *found;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(device.compiled, 1);
  for (const CachedOperator& answer : answers) {
    EXPECT_EQ(answer.compiled, answers[0].compiled);
    EXPECT_EQ(*answer.text, ToString(SumOf(9)));
    EXPECT_FALSE(answer.was_cached);
    EXPECT_GT(answer.duration, absl::ZeroDuration());
  }
  EXPECT_TRUE(cache->Get(SumOf(9))->was_cached);
  const OperatorCacheStatistics statistics = cache->statistics();
  EXPECT_EQ(statistics.misses, 1u);
  EXPECT_EQ(statistics.waits, kCallers - 1u);
  EXPECT_EQ(statistics.hits, 1u);
  EXPECT_EQ(statistics.entries, 1u);
}

TEST(OperatorCache, LetsOthersCompileMeanwhile) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  absl::Notification other_is_done;
  device.on_compile = [&other_is_done](int number) {
    if (number == 1) other_is_done.WaitForNotification();
    return absl::OkStatus();
  };
  std::thread slow([&cache] { EXPECT_TRUE(cache->Get(SumOf(1)).ok()); });
  while (device.compiled == 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(cache->Get(SumOf(2)).ok());
  EXPECT_TRUE(cache->Get(SumOf(2))->was_cached);
  other_is_done.Notify();
  slow.join();
}

TEST(OperatorCache, ReturnsErrorsToAllWaitingCallersWithoutCachingThem) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  device.on_compile = [&cache](int number) {
    if (number > 1) return absl::OkStatus();
    while (cache->statistics().waits < 3) absl::SleepFor(absl::Milliseconds(1));
    return absl::UnavailableError("The device was lost.");
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&cache] {
      EXPECT_EQ(cache->Get(SumOf(9)).status(), absl::UnavailableError("The device was lost."));
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(cache->statistics().failures, 1u);
  EXPECT_EQ(cache->statistics().entries, 0u);

  const auto again = cache->Get(SumOf(9));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->was_cached);
  EXPECT_EQ(device.compiled, 2);
}

TEST(OperatorCache, EndsAWaitAtItsDeadline) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  absl::Notification may_end;
  device.on_compile = [&may_end](int) {
    may_end.WaitForNotification();
    return absl::OkStatus();
  };
  std::thread first([&cache] {
    // Its own compilation is not interrupted.
    EXPECT_TRUE(cache->Get(SumOf(9), SteadyNow() + absl::Milliseconds(1)).ok());
  });
  while (device.compiled == 0) absl::SleepFor(absl::Milliseconds(1));
  const absl::Status late = cache->Get(SumOf(9), SteadyNow() + absl::Milliseconds(20)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), StartsWith("The deadline passed after "));
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("waiting for another caller to compile reduce(function=SUM"));
  may_end.Notify();
  first.join();
  EXPECT_TRUE(cache->Get(SumOf(9), absl::InfinitePast())->was_cached);
}

// Compiles until it is stopped.
class EndlessDevice : public CountingDevice {
 public:
  EndlessDevice() {
    on_abandonable = [](const std::stop_token& abandoned) {
      while (!abandoned.stop_requested()) absl::SleepFor(absl::Milliseconds(1));
      return absl::CancelledError("It was abandoned.");
    };
  }
};

TEST(OperatorCache, StopsACompilationThatNoCallerWaitsFor) {
  EndlessDevice device;
  const auto cache = OperatorCache::Create(device, {});
  std::stop_source first_leaves;
  std::stop_source second_leaves;
  const Program program = ProgramOf(SumOf(9));
  std::thread first([&] {
    const auto got =
        cache->Get(program, absl::InfiniteFuture(), {.cancelled = first_leaves.get_token()});
    EXPECT_EQ(got.status().code(), absl::StatusCode::kCancelled);
  });
  while (device.compiled == 0) absl::SleepFor(absl::Milliseconds(1));
  absl::Status second = absl::OkStatus();
  cache->Get(program, {.cancelled = second_leaves.get_token()},
             [&](const auto& got) { second = got.status(); });
  // The caller that has the thread leaves: it compiles for the other one.
  first_leaves.request_stop();
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(second, absl::OkStatus());
  EXPECT_EQ(cache->statistics().failures, 0u);
  // A wait that ends at its deadline leaves, too.
  EXPECT_EQ(cache->Get(program, SteadyNow()).status().code(), absl::StatusCode::kDeadlineExceeded);
  second_leaves.request_stop();
  EXPECT_EQ(second.code(), absl::StatusCode::kCancelled);
  first.join();
  EXPECT_EQ(device.compiled, 1);
  EXPECT_EQ(cache->statistics().failures, 0u);
}

TEST(OperatorCache, ACallerDoesNotJoinACompilationThatIsBeingStopped) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  absl::Notification may_end;
  device.on_compile = [&](int number) {
    if (number > 1) return absl::OkStatus();
    may_end.WaitForNotification();  // it takes a while until it stops
    return absl::CancelledError("It was abandoned.");
  };
  const Program program = ProgramOf(SumOf(9));
  std::stop_source leaves;
  std::thread first([&] {
    EXPECT_FALSE(
        cache->Get(program, absl::InfiniteFuture(), {.cancelled = leaves.get_token()}).ok());
  });
  while (device.compiled == 0) absl::SleepFor(absl::Milliseconds(1));
  leaves.request_stop();
  const auto later = cache->Get(program);
  ASSERT_TRUE(later.ok()) << later.status();
  may_end.Notify();
  first.join();
  // The end of the stopped one does not remove what the later one has compiled.
  EXPECT_EQ(cache->Get(program)->compiled, later->compiled);
  EXPECT_EQ(device.compiled, 2);
}

TEST(OperatorCache, KeepsAProgramWhoseLastCallerLeftJustBeforeItsEnd) {
  CountingDevice device;
  std::stop_source leaves;
  const auto cache = OperatorCache::Create(device, {});
  device.on_compile = [&](int number) {
    if (number == 1) leaves.request_stop();
    return absl::OkStatus();
  };
  const Program program = ProgramOf(SumOf(9));
  const auto leave = [&] {
    return cache->Get(program, absl::InfiniteFuture(), {.cancelled = leaves.get_token()}).status();
  };
  EXPECT_EQ(leave().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(cache->statistics().entries, 1u);
  const auto later = cache->Get(program);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_TRUE(later->was_cached);
  EXPECT_EQ(device.compiled, 1);
  // Not one of a lost device.
  cache->Invalidate();
  leaves = std::stop_source();
  device.on_compile = [&](int) {
    leaves.request_stop();
    cache->Invalidate();
    return absl::OkStatus();
  };
  EXPECT_EQ(leave().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(cache->statistics().entries, 0u);
}

TEST(OperatorCache, ACallerThatIsGoneAlreadyStopsItsCompilation) {
  EndlessDevice device;
  const auto cache = OperatorCache::Create(device, {});
  std::stop_source gone;
  gone.request_stop();
  const auto got =
      cache->Get(ProgramOf(SumOf(9)), absl::InfiniteFuture(), {.cancelled = gone.get_token()});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kCancelled);
}

TEST(OperatorCache, CompilesAsItsFirstCallerSays) {
  EndlessDevice device;
  const auto cache = OperatorCache::Create(device, {});
  const Program program = ProgramOf(SumOf(9));
  // As at a time limit.
  const auto compile = [&](const Program& wanted, std::stop_source abandoned) {
    abandoned.request_stop();
    EXPECT_FALSE(device.Compile(wanted, abandoned.get_token()).ok());
    return CompileResult(absl::ResourceExhaustedError("It takes too long."));
  };
  EXPECT_EQ(cache->Get(program, absl::InfiniteFuture(), {.compile = compile}).status(),
            absl::ResourceExhaustedError("It takes too long."));
}

TEST(OperatorCache, CallersLeaveAtTheEndOfACompilation) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 2});
  std::atomic<int> ended = 0;
  std::vector<std::thread> callers;
  constexpr int kCallers = 4;
  constexpr int kRounds = 500;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        std::stop_source leaves;
        std::thread other([&] { leaves.request_stop(); });
        cache->Get(ProgramOf(SumOf(static_cast<uint32_t>(round % 3 + 1))),
                   {.cancelled = i % 2 == 0 ? leaves.get_token() : std::stop_token()},
                   [&](const auto& got) {
                     EXPECT_TRUE(got.ok() || absl::IsCancelled(got.status()));
                     ++ended;
                   });
        other.join();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ended, kCallers * kRounds);
}

TEST(OperatorCache, InvalidatedCompilationsAreNeitherJoinedNorKept) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  absl::Notification may_end;
  device.on_compile = [&may_end](int number) {
    if (number == 1) may_end.WaitForNotification();
    return absl::OkStatus();
  };
  std::shared_ptr<const CompiledProgram> stale;
  std::thread first([&] { stale = cache->Get(SumOf(1))->compiled; });
  while (device.compiled == 0) absl::SleepFor(absl::Milliseconds(1));
  cache->Invalidate();
  const auto fresh = cache->Get(SumOf(1));
  EXPECT_FALSE(fresh->was_cached);
  may_end.Notify();
  first.join();
  EXPECT_NE(stale, nullptr);
  EXPECT_NE(stale, fresh->compiled);
  EXPECT_EQ(cache->Get(SumOf(1))->compiled, fresh->compiled);
  EXPECT_EQ(cache->statistics().entries, 1u);
}

TEST(OperatorCache, StaysWholeUnderManyCallersWithFailuresAndInvalidations) {
  CountingDevice device;
  device.on_compile = [](int number) {
    return number % 7 == 0 ? absl::InternalError("seventh") : absl::OkStatus();
  };
  const auto cache = OperatorCache::Create(device, {.capacity = 3});
  constexpr uint32_t kCallers = 8;
  constexpr uint32_t kRounds = 500;
  std::atomic<uint64_t> errors{0};
  std::vector<std::thread> callers;
  for (uint32_t caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        const OperatorDesc desc = SumOf(1 + (round * 5 + caller) % 6);
        const auto found = cache->Get(desc);
        if (found.ok()) {
          EXPECT_EQ(*OperatorOf(found->compiled->program()), desc);
        } else {
          ++errors;
        }
        if (caller == 0 && round % 50 == 0) cache->Invalidate();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  const OperatorCacheStatistics statistics = cache->statistics();
  EXPECT_EQ(statistics.hits + statistics.misses + statistics.waits, kCallers * kRounds);
  EXPECT_EQ(statistics.misses, static_cast<uint64_t>(device.compiled));
  EXPECT_EQ(statistics.failures, statistics.misses / 7);
  EXPECT_GE(errors, statistics.failures);
  EXPECT_LE(statistics.entries, 3u);
}

}  // namespace
}  // namespace opmill
