// One client over several real servers that come and go under load.
#include <signal.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

constexpr size_t kReplicas = 3;
// An execution of one message, and one that is sent in chunks.
constexpr std::array<uint32_t, 2> kColumns = {1024, 1'000'000};

v1::OperatorDesc ArgMax(uint32_t columns) {
  v1::OperatorDesc desc;
  v1::TensorDesc& input = *desc.mutable_arg_max()->mutable_input();
  input.set_data_type(v1::DATA_TYPE_UINT32);
  input.add_sizes(columns);
  desc.mutable_arg_max()->add_axes(0);
  desc.mutable_arg_max()->set_axis_direction(v1::AXIS_DIRECTION_INCREASING);
  return desc;
}

class Replicas {
 public:
  void Start(size_t index) {
    const std::string address =
        addresses_[index].empty() ? "127.0.0.1:0" : addresses_[index];  // an old one comes back
    auto server = ServerProcess::Start({"--device=software", absl::StrCat("--address=", address)});
    ASSERT_TRUE(server.ok()) << server.status();
    servers_[index] = *std::move(server);
    addresses_[index] = servers_[index]->address();
  }
  void StartAll() {
    for (size_t i = 0; i < kReplicas; ++i) Start(i);
  }
  ServerProcess& operator[](size_t index) { return *servers_[index]; }
  std::string targets() const { return absl::StrJoin(addresses_, ","); }

 private:
  std::array<std::unique_ptr<ServerProcess>, kReplicas> servers_;
  std::array<std::string, kReplicas> addresses_;
};

// Threads that execute, each with an answer of its own, until they are stopped.
class Load {
 public:
  explicit Load(Client& client) {
    for (uint32_t i = 0; i < 6; ++i) {
      threads_.emplace_back([this, &client, i] { Run(client, i); });
    }
  }
  ~Load() { Stop(); }

  void Stop() {
    stopped_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void AwaitMore(int executions) {
    const int wanted = good_ + executions;
    while (good_ < wanted && failed_ == 0) absl::SleepFor(absl::Milliseconds(5));
  }
  int good() const { return good_; }
  std::string failures() {
    std::lock_guard<std::mutex> lock(mutex_);
    return absl::StrJoin(failures_, "\n");
  }

 private:
  void Run(Client& client, uint32_t index) {
    const uint32_t columns = kColumns[index % kColumns.size()];
    const uint32_t best = 7 + index;
    std::vector<uint32_t> values(columns);
    std::iota(values.begin(), values.end(), 1);
    values[best] = columns + 1;
    const v1::OperatorDesc desc = ArgMax(columns);
    while (!stopped_ && failed_ == 0) {
      const absl::StatusOr<ExecutionResult> result =
          client.Execute(desc, std::as_bytes(std::span(values)));
      uint32_t answer = 0;
      if (result.ok()) std::memcpy(&answer, result->outputs[0].bytes.data(), sizeof(answer));
      if (answer == best) {
        ++good_;
        continue;
      }
      ++failed_;
      std::lock_guard<std::mutex> lock(mutex_);
      failures_.push_back(result.ok() ? absl::StrCat(answer, " is not ", best)
                                      : result.status().ToString());
    }
  }

  std::atomic<bool> stopped_ = false;
  std::atomic<int> good_ = 0;
  std::atomic<int> failed_ = 0;
  std::mutex mutex_;
  std::vector<std::string> failures_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

class ReplicasTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(replicas_.StartAll());
    absl::StatusOr<Client> client = Client::Connect(replicas_.targets());
    ASSERT_TRUE(client.ok()) << client.status();
    client_.emplace(*std::move(client));
  }

  // How many executions a server has ended well since its start.
  uint64_t ExecutedBy(size_t index) {
    absl::StatusOr<Client> client = Client::Connect(replicas_[index].address());
    EXPECT_TRUE(client.ok()) << client.status();
    const auto statistics = client->GetStatistics();
    EXPECT_TRUE(statistics.ok()) << statistics.status();
    uint64_t count = 0;
    for (const auto& each : statistics->operators()) count += each.succeeded();
    return count;
  }

  Replicas replicas_;
  std::optional<Client> client_;
};

TEST_F(ReplicasTest, ShareTheWork) {
  Load load(*client_);
  load.AwaitMore(60);
  load.Stop();
  EXPECT_EQ(load.failures(), "");
  for (size_t i = 0; i < kReplicas; ++i) EXPECT_GE(ExecutedBy(i), 10u) << i;
}

TEST_F(ReplicasTest, NoCallFailsWhileAllAreRestartedInTurn) {
  Load load(*client_);
  for (size_t i = 0; i < kReplicas; ++i) {
    load.AwaitMore(30);
    replicas_[i].Signal(SIGTERM);
    EXPECT_EQ(replicas_[i].WaitForExit(), 0);
    load.AwaitMore(30);
    ASSERT_NO_FATAL_FAILURE(replicas_.Start(i));
    // The next goes when this one is back at work.
    for (int tries = 0; ExecutedBy(i) == 0 && tries < 300; ++tries) {
      absl::SleepFor(absl::Milliseconds(100));
    }
    EXPECT_GT(ExecutedBy(i), 0u) << i;
  }
  load.Stop();
  EXPECT_EQ(load.failures(), "");
}

TEST_F(ReplicasTest, NoCallFailsWhenOneIsKilled) {
  Load load(*client_);
  load.AwaitMore(30);
  replicas_[1].Signal(SIGKILL);
  EXPECT_EQ(replicas_[1].WaitForExit(), -SIGKILL);
  load.AwaitMore(100);
  load.Stop();
  EXPECT_EQ(load.failures(), "");
}

TEST_F(ReplicasTest, TellWhenAllAreGone) {
  for (size_t i = 0; i < kReplicas; ++i) {
    replicas_[i].Signal(SIGKILL);
    EXPECT_EQ(replicas_[i].WaitForExit(), -SIGKILL);
  }
  const uint32_t values[] = {1, 2};
  const auto execute = [&](absl::Duration timeout) {
    return client_->Execute(ArgMax(2), std::as_bytes(std::span(values)), {.timeout = timeout})
        .status();
  };
  EXPECT_EQ(execute(absl::InfiniteDuration()).code(), absl::StatusCode::kUnavailable);
  const absl::Time begun = absl::Now();
  EXPECT_FALSE(execute(absl::Seconds(1)).ok());
  EXPECT_LT(absl::Now() - begun, absl::Seconds(2));
}

TEST(ClientTargetTest, RefusesAListOfNames) {
  const absl::StatusOr<Client> client = Client::Connect("localhost:1,localhost:2");
  EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("dns:///name:port"));
}

}  // namespace
}  // namespace opmill
