#include "kernels/engine/operator_cache.h"

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/steady_time.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/program_plan.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/plan_cost.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CompiledNothing : public CompiledProgram {
 public:
  CompiledNothing(Program program, ProgramCost cost)
      : CompiledProgram(std::move(program), std::move(cost)) {}
};

// Only compiles: counts, and runs the test's callback before each compilation.
class CountingDevice : public Device {
 public:
  std::function<absl::Status(int number)> on_compile = [](int) { return absl::OkStatus(); };
  std::function<absl::Status(const std::stop_token&)> on_abandonable;
  std::function<void(ProgramCost&)> on_cost = [](ProgramCost&) {};
  std::atomic<int> compiled{0};

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::shared_ptr<const CompiledProgram>> Compile(
      const Program& program, const std::stop_token& abandoned) override {
    const absl::StatusOr<OperatorPlan> plan = MakePlan(program, {});
    if (!plan.ok()) return plan.status();
    const absl::Status status = on_compile(++compiled);
    if (!status.ok()) return status;
    if (on_abandonable) {
      const absl::Status abandonable = on_abandonable(abandoned);
      if (!abandonable.ok()) return abandonable;
    }
    ProgramCost cost = CostOf(*plan);
    on_cost(cost);
    return std::make_shared<const CompiledNothing>(program, std::move(cost));
  }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(uint64_t, Residency) override {
    return absl::UnimplementedError("This device compiles only.");
  }
  void Run(std::shared_ptr<const CompiledProgram>, Bindings, std::stop_token,
           RunCallback done) override {
    done(absl::UnimplementedError("This device compiles only."));
  }
  DeviceCounters counters() const override { return {}; }

 private:
  DeviceInfo info_;
};

OperatorDesc SumOf(uint32_t length) {
  return ReduceDesc{.function = ReduceFunction::kSum,
                    .input = {DataType::kFloat32, {4, length}, {}},
                    .output = TensorDesc{DataType::kFloat32, {4, 1}, {}},
                    .axes = {1}};
}

// As a program; as an operator, it must be found as well if it is normalized.
std::optional<CachedOperator> Find(OperatorCache& cache, const OperatorDesc& validated) {
  const auto found = cache.Find(std::make_shared<const Program>(ProgramOf(validated)));
  if (const auto normalized = cache.FindNormalized(validated)) {
    EXPECT_TRUE(found.has_value());
    EXPECT_EQ(*normalized->program, ProgramOf(validated));
  } else if (found.has_value()) {
    EXPECT_NE(*found->program, ProgramOf(validated));
  }
  return found;
}

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

TEST(OperatorCache, EvictsTheLeastRecentlyUsed) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 2});
  const auto in_use = cache->Get(SumOf(1))->compiled;
  cache->Get(SumOf(2)).IgnoreError();
  EXPECT_TRUE(cache->Get(SumOf(1))->was_cached);
  EXPECT_FALSE(cache->Get(SumOf(3))->was_cached);  // evicts 2
  EXPECT_TRUE(cache->Get(SumOf(1))->was_cached);
  EXPECT_FALSE(cache->Get(SumOf(2))->was_cached);  // evicts 3
  EXPECT_FALSE(cache->Get(SumOf(3))->was_cached);  // evicts 1
  EXPECT_EQ(cache->statistics().evictions, 3u);
  EXPECT_EQ(cache->statistics().entries, 2u);
  EXPECT_EQ(*OperatorOf(in_use->program()), SumOf(1));
}

TEST(OperatorCache, EvictsUntilTheBytesOfPlansFit) {
  CountingDevice device;
  const uint64_t one =
      OperatorCache::Create(device, {})->Get(SumOf(1))->compiled->cost().kept_bytes;
  const auto cache = OperatorCache::Create(device, {.capacity = 64, .max_bytes = 2 * one});
  for (uint32_t length = 1; length <= 3; ++length) EXPECT_TRUE(cache->Get(SumOf(length)).ok());
  EXPECT_EQ(cache->statistics().entries, 2u);
  EXPECT_EQ(cache->statistics().bytes, 2 * one);
  EXPECT_FALSE(Find(*cache, SumOf(1)).has_value());
  cache->Invalidate();
  EXPECT_EQ(cache->statistics().bytes, 0u);
  // An operator that exceeds the limit serves its caller, and evicts nothing.
  const auto small = OperatorCache::Create(device, {.capacity = 64, .max_bytes = one - 1});
  EXPECT_TRUE(small->Get(SumOf(1)).ok());
  EXPECT_EQ(small->statistics().entries, 0u);
}

TEST(OperatorCache, CountsWhatProgramsShareOnce) {
  CountingDevice device;
  const char weights = 0;
  const char others = 0;
  device.on_cost = [&](ProgramCost& cost) {
    cost.kept_bytes = 100;
    cost.shared = {{&weights, 60}};
    if (device.compiled == 3) cost.shared.push_back({&others, 20});
  };
  const auto cache = OperatorCache::Create(device, {.capacity = 64, .max_bytes = 200});
  ASSERT_TRUE(cache->Get(SumOf(1)).ok());
  EXPECT_EQ(cache->statistics().bytes, 100u);
  ASSERT_TRUE(cache->Get(SumOf(2)).ok());
  EXPECT_EQ(cache->statistics().bytes, 140u);
  ASSERT_TRUE(cache->Get(SumOf(3)).ok());
  EXPECT_EQ(cache->statistics().bytes, 180u);
  ASSERT_TRUE(cache->Get(SumOf(4)).ok());  // the first gives way, and leaves the weights
  EXPECT_EQ(cache->statistics().entries, 3u);
  EXPECT_EQ(cache->statistics().bytes, 180u);
  cache->Evict(41);  // the second has 40 for itself
  EXPECT_EQ(cache->statistics().bytes, 100u);
  cache->Evict(1);
  EXPECT_EQ(cache->statistics().bytes, 0u);
}

TEST(OperatorCache, EvictsUntilSoManyBytesAreFree) {
  CountingDevice device;
  const char weights = 0;
  device.on_cost = [&](ProgramCost& cost) {
    cost.kept_bytes = 100;
    if (device.compiled <= 4) cost.shared = {{&weights, 90}};
  };
  const auto cache = OperatorCache::Create(device, {.capacity = 64});
  for (uint32_t length = 1; length <= 8; ++length) ASSERT_TRUE(cache->Get(SumOf(length)).ok());
  EXPECT_EQ(cache->statistics().bytes, 4 * 10 + 90 + 4 * 100u);
  cache->Evict(50);  // the first four, which have the weights
  EXPECT_EQ(cache->statistics().entries, 4u);
  EXPECT_EQ(cache->statistics().bytes, 400u);
  cache->Evict(100);
  EXPECT_EQ(cache->statistics().entries, 3u);
  EXPECT_TRUE(Find(*cache, SumOf(6)).has_value());
  cache->Evict(301);  // more than they have
  EXPECT_EQ(cache->statistics().entries, 1u);
  EXPECT_TRUE(Find(*cache, SumOf(6)).has_value());  // used last
}

// Uses a different kernel for each type, but one for all lengths that end within a vector.
OperatorDesc SumOf(DataType type, uint32_t length) {
  return ReduceDesc{.function = ReduceFunction::kSum,
                    .input = {type, {4, length}, {}},
                    .output = TensorDesc{type, {4, 1}, {}},
                    .axes = {1}};
}

TEST(OperatorCache, KeepsOperatorsOfNoMoreKernelsThanItMay) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 64, .max_kernels = 2});
  for (uint32_t length = 1001; length < 1008; length += 2) {
    ASSERT_TRUE(cache->Get(SumOf(DataType::kInt32, length)).ok());
  }
  EXPECT_EQ(cache->statistics().kernels, 1u);
  EXPECT_EQ(cache->statistics().entries, 4u);
  ASSERT_TRUE(cache->Get(SumOf(DataType::kFloat32, 1001)).ok());
  EXPECT_EQ(cache->statistics().kernels, 2u);
  EXPECT_EQ(cache->statistics().evictions, 0u);

  // All four operators of the first kernel are evicted; recently used ones stay.
  ASSERT_TRUE(cache->Get(SumOf(DataType::kFloat16, 1001)).ok());
  EXPECT_EQ(cache->statistics().kernels, 2u);
  EXPECT_EQ(cache->statistics().evictions, 4u);
  EXPECT_TRUE(Find(*cache, SumOf(DataType::kFloat32, 1001)).has_value());

  cache->Evict(1);  // half precision, because the other one was just used
  EXPECT_FALSE(Find(*cache, SumOf(DataType::kFloat16, 1001)).has_value());
  EXPECT_EQ(cache->statistics().kernels, 1u);
  cache->Evict(7);
  EXPECT_EQ(cache->statistics().entries, 0u);
  EXPECT_EQ(cache->statistics().kernels, 0u);
  const auto none = OperatorCache::Create(device, {.capacity = 64, .max_kernels = 0});
  EXPECT_TRUE(none->Get(SumOf(1)).ok());
  EXPECT_EQ(none->statistics().entries, 0u);
}

TEST(OperatorCache, FindsWhatIsKeptAndCompilesNothing) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 2});
  EXPECT_FALSE(Find(*cache, SumOf(1)).has_value());
  EXPECT_EQ(device.compiled, 0);
  const auto first = cache->Get(SumOf(1));
  ASSERT_TRUE(first.ok() && cache->Get(SumOf(2)).ok());
  const auto found = Find(*cache, SumOf(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->was_cached);
  EXPECT_EQ(found->compiled, first->compiled);
  // A lookup counts as a use: the other operator is evicted.
  ASSERT_TRUE(cache->Get(SumOf(3)).ok());
  EXPECT_TRUE(Find(*cache, SumOf(1)).has_value());
  EXPECT_FALSE(Find(*cache, SumOf(2)).has_value());
  EXPECT_EQ(cache->statistics().hits, 4u);  // as a program and as an operator
  EXPECT_EQ(cache->statistics().misses, 3u);
}

// The sum over axis 1, of which another one is the next input.
Program TwoSums(uint32_t length) {
  Program program;
  for (const auto& [kind, size] :
       {std::pair(ValueKind::kInput, length), std::pair(ValueKind::kIntermediate, 1u),
        std::pair(ValueKind::kOutput, 1u)}) {
    program.values.push_back({.kind = kind, .tensor = {DataType::kFloat32, {4, size}, {}}});
  }
  program.nodes.push_back({SumOf(length), {0}, {1}});
  program.nodes.push_back({SumOf(1), {1}, {2}});
  return program;
}

TEST(OperatorCache, FindsProgramsAgainByTheirAddress) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  auto program = std::make_shared<Program>(TwoSums(5));
  const auto first = cache->Get(*program);
  ASSERT_TRUE(first.ok()) << first.status();
  for (int i = 0; i < 3; ++i) {
    const auto found = cache->Find(program);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->compiled, first->compiled);
  }
  EXPECT_EQ(cache->statistics().hits, 3u);
  // Another one at the same address is another program.
  Program* const address = program.get();
  program.reset();
  std::vector<std::shared_ptr<Program>> others;
  do {
    others.push_back(std::make_shared<Program>(TwoSums(6)));
  } while (others.back().get() != address && others.size() < 100);
  EXPECT_FALSE(cache->Find(others.back()).has_value());
}

TEST(OperatorCache, DoesNotKeepProgramsThatItOnlyKnows) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  std::weak_ptr<const Program> normalized;
  auto program = std::make_shared<const Program>(TwoSums(5));
  ASSERT_TRUE(cache->Get(*program).ok());
  normalized = cache->Find(program)->program;
  EXPECT_FALSE(normalized.expired());
  cache->Evict(1);
  EXPECT_TRUE(normalized.expired());
  EXPECT_FALSE(cache->Find(program).has_value());
  ASSERT_TRUE(cache->Get(*program).ok());
  EXPECT_TRUE(cache->Find(program).has_value());
  EXPECT_EQ(device.compiled, 2);
}

TEST(OperatorCache, KeepsNothingWithoutCapacity) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 0});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(cache->Get(SumOf(1))->was_cached);
  EXPECT_EQ(cache->statistics().entries, 0u);
  EXPECT_EQ(cache->statistics().evictions, 0u);
}

TEST(OperatorCache, ForgetsAllWhenInvalidated) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  const auto before = cache->Get(SumOf(1))->compiled;
  cache->Invalidate();
  EXPECT_EQ(cache->statistics().entries, 0u);
  EXPECT_EQ(cache->statistics().kernels, 0u);
  const auto after = cache->Get(SumOf(1));
  EXPECT_FALSE(after->was_cached);
  EXPECT_NE(after->compiled, before);
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

TEST(OperatorKey, IsEqualForEquivalentDescriptors) {
  const OperatorDesc desc = ReduceDesc{.input = {DataType::kInt32, {2, 3, 4}, {}},
                                       .output = TensorDesc{DataType::kInt32, {1, 3, 1}, {}},
                                       .axes = {0, 2}};
  const OperatorDesc spelled_out =
      ReduceDesc{.input = {DataType::kInt32, {2, 3, 4}, {12, 4, 1}},
                 .output = TensorDesc{DataType::kInt32, {1, 3, 1}, {3, 1, 1}},
                 .axes = {2, 0}};
  EXPECT_EQ(OperatorKey(desc), OperatorKey(spelled_out));
  EXPECT_EQ(OperatorKey(desc).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(OperatorKey(desc).size(), 64u);

  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  EXPECT_FALSE(cache->Get(desc)->was_cached);
  EXPECT_TRUE(cache->Get(spelled_out)->was_cached);

  // The same for each difference alone.
  auto strided_input = ReduceDesc::From(desc);
  strided_input.input.strides = {12, 4, 1};
  auto strided_output = ReduceDesc::From(desc);
  strided_output.output->strides = {3, 1, 1};
  auto other_axes = ReduceDesc::From(desc);
  other_axes.axes = {2, 0};
  for (const OperatorDesc& same : {desc, spelled_out, OperatorDesc(strided_input),
                                   OperatorDesc(strided_output), OperatorDesc(other_axes)}) {
    EXPECT_TRUE(Find(*cache, same).has_value()) << ToString(same);
  }
}

TEST(OperatorKey, DiffersWithEveryField) {
  const TensorDesc input = {DataType::kFloat32, {4, 9}, {}};
  const TensorDesc row = {DataType::kFloat32, {4, 1}, {}};
  const TensorDesc index_row = {DataType::kUint32, {4, 1}, {}};
  const ReduceDesc reduce = {
      .function = ReduceFunction::kSum, .input = input, .output = row, .axes = {1}};
  const ArgReduceDesc arg = {
      .extreme = Extreme::kMax, .input = input, .output = index_row, .axes = {1}};
  const TopKDesc top_k = {
      .input = input, .output_values = row, .output_indices = index_row, .axis = 1, .k = 1};
  const HardmaxDesc hardmax = {.input = input, .output = input, .axes = {1}};

  std::vector<OperatorDesc> all = {reduce, arg, top_k, hardmax};
  const auto with = [&all](auto desc, const auto& change) {
    change(desc);
    all.push_back(desc);
  };
  with(reduce, [](ReduceDesc& d) { d.function = ReduceFunction::kMax; });
  with(reduce, [](ReduceDesc& d) { d.input.data_type = DataType::kFloat16; });
  with(reduce, [](ReduceDesc& d) { d.input.sizes = {49}; });
  with(reduce, [](ReduceDesc& d) { d.input.strides = {10, 1}; });
  with(reduce, [](ReduceDesc& d) { d.output->strides = {2, 1}; });
  with(reduce, [](ReduceDesc& d) { d.axes = {0}; });
  with(reduce, [](ReduceDesc& d) { d.axes = {0, 1}; });
  with(arg, [](ArgReduceDesc& d) { d.extreme = Extreme::kMin; });
  with(arg, [](ArgReduceDesc& d) { d.axis_direction = AxisDirection::kDecreasing; });
  with(arg, [](ArgReduceDesc& d) { d.output->data_type = DataType::kInt64; });
  with(top_k, [](TopKDesc& d) { d.axis = 0; });
  with(top_k, [](TopKDesc& d) { d.k = 2; });
  with(top_k, [](TopKDesc& d) { d.axis_direction = AxisDirection::kIncreasing; });
  with(top_k, [](TopKDesc& d) { d.output_values->strides = {2, 1}; });
  with(top_k, [](TopKDesc& d) { d.output_indices->strides = {2, 1}; });
  with(hardmax, [](HardmaxDesc& d) { d.output->strides = {10, 1}; });
  std::vector<std::string> keys;
  for (const OperatorDesc& desc : all) {
    EXPECT_THAT(keys, ::testing::Not(::testing::Contains(OperatorKey(desc)))) << ToString(desc);
    keys.push_back(OperatorKey(desc));
  }
}

}  // namespace
}  // namespace opmill
