// Ten times the load that the server can handle, and attackers: its memory stays under the limit,
// it computes what it accepts correctly and in bounded time, it refuses the rest at once, and
// recovers completely.
//
// OPMILL_OVERLOAD_SECONDS is the duration; the default is 4.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/overload_load.h"
#include "tests/end_to_end/stream_fixture.h"
#include "tests/support/quantities.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

constexpr uint64_t kMemoryLimit = 640 * kMebibyte;
constexpr uint64_t kMaxMessageBytes = 8 * kMebibyte;
constexpr int kMaxQueued = 32;

absl::Duration OverloadDuration() {
  const char* seconds = std::getenv("OPMILL_OVERLOAD_SECONDS");
  int value = 4;
  if (seconds != nullptr && !absl::SimpleAtoi(seconds, &value)) return absl::ZeroDuration();
  return absl::Seconds(value);
}

// The times from the arrival of a call to its refusal, from the server's log.
Distribution RefusalsOf(const ServerProcess& server, absl::string_view rpc) {
  Distribution refusals;
  const std::string from = absl::StrCat("\"rpc\":\"", rpc, "\"");
  for (const std::string& line : server.log_lines()) {
    constexpr absl::string_view kHeld = "\"held_us\":";
    const size_t held = line.find(kHeld.data());
    int64_t microseconds = 0;
    if (held == std::string::npos || !absl::StrContains(line, from) ||
        !absl::StrContains(line, "RESOURCE_EXHAUSTED")) {
      continue;
    }
    const std::string number = line.substr(held + kHeld.size());
    if (absl::SimpleAtoi(number.substr(0, number.find_first_not_of("0123456789")), &microseconds)) {
      refusals.sorted.push_back(absl::Microseconds(microseconds));
    }
  }
  std::sort(refusals.sorted.begin(), refusals.sorted.end());
  return refusals;
}

class Overload : public StreamTest {
 protected:
  // A server whose limits are reached quickly on any machine.
  void SetUp() override {
    Restart({absl::StrCat("--memory_limit=", kMemoryLimit),
             absl::StrCat("--max_message_bytes=", kMaxMessageBytes),
             absl::StrCat("--max_queued=", kMaxQueued), "--max_streams=64", "--max_connections=64",
             "--operator_cache_capacity=256", "--stall_timeout=1s",
             absl::StrCat("--shader_cache=", cache_.utf8())});
  }

  void Restart(std::vector<std::string> flags) {
    TearDown();
    StartServer(std::move(flags));
  }

  const ScratchDirectory cache_;

  // Except for the 42 kernels that may be live under this limit, and fragmentation.
  void ExpectMemoryReturns(uint64_t before) {
    const uint64_t most = before + 80 * kMebibyte;
    const absl::Time end = absl::Now() + kPatience;
    uint64_t resident = server().MemoryBytes();
    while (resident > most && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(50));
      resident = server().MemoryBytes();
    }
    const v1::DeviceStatistics device = Statistics().device();
    std::printf(
        "resident: %lu MiB before, %lu MiB at most, %lu MiB after; %lu kernels made live, %lu "
        "compiled, %lu live\n",
        before / kMebibyte, server().PeakMemoryBytes() / kMebibyte, resident / kMebibyte,
        device.pipelines_created(), device.shaders_compiled(), device.live_kernels());
    EXPECT_LE(resident, most);
  }
};

TEST_F(Overload, TenfoldLoadWithAttackersStaysWithinItsLimits) {
  const absl::Duration duration = OverloadDuration();
  ASSERT_GT(duration, absl::ZeroDuration()) << "OPMILL_OVERLOAD_SECONDS is no number of seconds";
  Load load(server().address(), 4);
  load.MeasureCapacity(1, absl::Milliseconds(200));  // compiles
  const double capacity = load.MeasureCapacity(4, absl::Seconds(1));
  const uint64_t before = server().MemoryBytes();
  ASSERT_GT(capacity, 0);

  auto attackers = std::make_unique<Attackers>(server().address(), kMaxMessageBytes);
  const Outcomes outcomes = load.Offer(10 * capacity, duration);
  const Attackers::Counts& counts = attackers->counts();
  // On a busy machine the first of each may take longer.
  const absl::Time patience = absl::Now() + kPatience;
  while ((counts.operators_compiled == 0 || counts.stalled_readers == 0) &&
         absl::Now() < patience) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  const auto count = [](const std::atomic<uint64_t>& value) { return value.load(); };
  const uint64_t accepted = outcomes.accepted.sorted.size();
  const uint64_t refused = outcomes.refused.sorted.size();
  std::printf("%.0f a second go well alone; offered 10 times as many for %s\n", capacity,
              absl::FormatDuration(duration).c_str());
  std::printf("accepted %lu: %s\n", accepted, outcomes.accepted.Text().c_str());
  std::printf("refused %lu, as callers see it: %s\n", refused, outcomes.refused.Text().c_str());
  std::printf("refused by gRPC for its own memory: %lu\n", outcomes.by_transport);
  std::printf(
      "uploads stalled %lu, readers stalled %lu, large messages %lu, oversized refused %lu, "
      "operators compiled %lu, connections made %lu, closed %lu\n",
      count(counts.stalled_uploads), count(counts.stalled_readers), count(counts.large_messages),
      count(counts.oversized_refused), count(counts.operators_compiled),
      count(counts.connections_made), count(counts.connections_closed));

  EXPECT_EQ(outcomes.wrong, 0u);
  EXPECT_EQ(outcomes.without_retry, 0u);
  EXPECT_TRUE(outcomes.others.empty())
      << outcomes.others.size() << " ended otherwise, the first: " << outcomes.others.front();
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, accepted);
  EXPECT_GT(count(counts.stalled_uploads), 0u);
  EXPECT_GT(count(counts.stalled_readers), 0u);
  EXPECT_GT(count(counts.oversized_refused), 0u);
  EXPECT_GT(count(counts.operators_compiled), 0u);
  EXPECT_GT(count(counts.connections_closed), 0u);
  for (const char* text : {"(max_queued)", "\"reason\":\"room\""}) {
    EXPECT_TRUE(server().WaitForLine(text).has_value()) << text;
  }
  EXPECT_LT(server().PeakMemoryBytes(), kMemoryLimit);
  // An accepted call waits only for those in the queue, but attackers and other programs may slow
  // each of them down.
  EXPECT_LT(outcomes.accepted.at(0.99), absl::Seconds(1 + 10 * (kMaxQueued + 4) / capacity));

  attackers.reset();
  WaitUntilIdle();
  const Distribution in_server = RefusalsOf(server(), "Execute");
  std::printf("refused %zu, from arrival to refusal in the server: %s\n", in_server.sorted.size(),
              in_server.Text().c_str());
  EXPECT_GE(in_server.sorted.size(), refused);
  EXPECT_LT(in_server.at(0.99), absl::Milliseconds(50));
  ExpectMemoryReturns(before);
  ExpectServes();
}

// Each message is valid, but together they exceed the memory limit.
TEST_F(Overload, ManyLongMessagesAtOnceStayUnderTheLimit) {
  constexpr uint64_t kLimit = 1024 * kMebibyte;
  constexpr int kCallers = 24;
  constexpr uint32_t kElements = 15 << 20;  // 60 MiB
  Restart({absl::StrCat("--memory_limit=", kLimit)});
  v1::ExecuteRequest request;
  *request.mutable_operator_() = SumOf(kElements);
  request.add_inputs(std::string(uint64_t{kElements} * sizeof(float), '\0'));
  std::mutex mutex;
  std::map<std::string, int> ends;
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      const auto caller = ConnectTo(server().address());
      for (int j = 0; j < 2; ++j) {
        grpc::ClientContext context;
        const auto reader = caller->Execute(&context, request);
        v1::ExecuteResponse response;
        while (reader->Read(&response)) {
        }
        const grpc::Status status = reader->Finish();
        const std::lock_guard lock(mutex);
        ++ends[absl::StrCat(status.error_code(), " ", status.error_message().substr(0, 40))];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const auto& [end, count] : ends) std::printf("%d times: %s\n", count, end.c_str());
  std::printf("at most %lu MiB\n", server().PeakMemoryBytes() / kMebibyte);
  EXPECT_LT(server().PeakMemoryBytes(), kLimit);
  EXPECT_GT(ends["0 "], 0);
  ExpectServes();
}

}  // namespace
}  // namespace opmill
