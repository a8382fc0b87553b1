#include "server/observe/statistics.h"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill {
namespace {

std::vector<OperatorDesc> OneOfEach() {
  return {ArgReduceDesc{.extreme = Extreme::kMin}, ArgReduceDesc{.extreme = Extreme::kMax},
          ReduceDesc{}, TopKDesc{}, HardmaxDesc{}};
}

const OperatorStatistics& Of(const Statistics& statistics, const OperatorDesc& desc) {
  return statistics.operators()[OperatorIndex(desc)];
}

inline constexpr std::array<uint64_t, 3> kBounds = {1, 10, 100};

TEST(Histogram, CountsAValueUpToItsBound) {
  Histogram<kBounds> histogram;
  for (const uint64_t value : {0, 1, 2, 10, 11, 100, 101, 1000}) histogram.Add(value);
  const auto snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.counts, (std::array<uint64_t, 4>{2, 2, 2, 2}));
  EXPECT_EQ(snapshot.sum, 1225u);
  EXPECT_EQ(snapshot.count(), 8u);
}

TEST(Statistics, KnowEveryOperatorByItsName) {
  for (const OperatorDesc& desc : OneOfEach()) {
    EXPECT_EQ(Operators()[OperatorIndex(desc)]->name, OperatorName(desc));
  }
}

TEST(Statistics, CountEndsByTheirCode) {
  Statistics statistics;
  for (const OperatorDesc& desc : OneOfEach()) {
    statistics.AddEnd({.desc = &desc, .status = absl::OkStatus(), .input_bytes = 3});
    statistics.AddEnd({.desc = &desc, .status = absl::CancelledError(""), .input_bytes = 4});
    statistics.AddEnd({.desc = &desc, .status = absl::DeadlineExceededError("")});
    statistics.AddEnd({.desc = &desc, .status = absl::ResourceExhaustedError("")});
    statistics.AddEnd({.desc = &desc, .status = absl::InternalError("")});
    statistics.AddEnd(
        {.desc = &desc, .status = absl::Status(static_cast<absl::StatusCode>(99), "")});
    const OperatorStatistics& of = Of(statistics, desc);
    EXPECT_EQ(of.succeeded(), 1u);
    EXPECT_EQ(of.cancelled(), 2u);
    EXPECT_EQ(of.failed(), 3u);
    EXPECT_EQ(of.ends[static_cast<size_t>(absl::StatusCode::kUnknown)], 1u);
    EXPECT_EQ(of.input_bytes, 7u);
  }
  statistics.AddRefusal(absl::InvalidArgumentError(""));
  statistics.AddRefusal(absl::InvalidArgumentError(""));
  statistics.AddRefusal(absl::ResourceExhaustedError(""));
  EXPECT_EQ(SumOf(statistics.refusals()), 3u);
  EXPECT_EQ(statistics.refusals()[static_cast<size_t>(absl::StatusCode::kInvalidArgument)], 2u);
}

TEST(Statistics, MeasureSuccessfulExecutions) {
  Statistics statistics;
  const OperatorDesc desc = TopKDesc{};
  const StageTimes times = {.upload = absl::Milliseconds(1),
                            .compile = absl::ZeroDuration(),
                            .queue = absl::Milliseconds(2),
                            .compute = absl::Milliseconds(3),
                            .download = -absl::Nanoseconds(1)};  // the clock was set back
  statistics.AddEnd({.desc = &desc,
                     .status = absl::OkStatus(),
                     .times = times,
                     .total = absl::Milliseconds(9),
                     .batch_size = 4});
  statistics.AddEnd({.desc = &desc, .status = absl::InternalError(""), .times = times});
  const OperatorStatistics& of = Of(statistics, desc);
  EXPECT_EQ(of.upload.snapshot().sum, 1'000'000u);
  EXPECT_EQ(of.queue.snapshot().sum, 2'000'000u);
  EXPECT_EQ(of.compute.snapshot().sum, 3'000'000u);
  EXPECT_EQ(of.download.snapshot().sum, 0u);
  EXPECT_EQ(of.total.snapshot().sum, 9'000'000u);
  EXPECT_EQ(of.batch_size.snapshot().sum, 4u);
  EXPECT_EQ(of.compile.snapshot().count(), 1u);
}

TEST(Statistics, HaveOneCallerOfEachName) {
  Statistics statistics;
  for (const char* const name : {"", "ann", "address", "other", "ann"}) statistics.OfCaller(name);
  std::vector<std::string> names;
  for (const CallerCounters* const of : statistics.callers()) names.push_back(of->name);
  EXPECT_THAT(names, testing::ElementsAre("address", "other", "ann"));
}

TEST(Statistics, AreThreadSafe) {
  constexpr uint64_t kEach = 20'000;
  Statistics statistics;
  const OperatorDesc desc = ReduceDesc{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; n < kEach; ++n) {
        statistics.AddEnd({.desc = &desc,
                           .status = absl::OkStatus(),
                           .total = absl::Nanoseconds(1),
                           .output_bytes = 2});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const OperatorStatistics& of = Of(statistics, desc);
  EXPECT_EQ(of.succeeded(), 4 * kEach);
  EXPECT_EQ(of.output_bytes, 8 * kEach);
  EXPECT_EQ(of.total.snapshot().sum, 4 * kEach);
}

}  // namespace
}  // namespace opmill
