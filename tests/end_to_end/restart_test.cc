// A client whose only server is killed and comes back.
#include <csignal>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/channel.h"
#include "client/client.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/replicas_fixture.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

class RestartTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  // At the same address each time.
  void Start() {
    auto server = ServerProcess::Start(
        {absl::StrCat("--address=unix:", directory_.utf8(), "/socket"), "--device=reference"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Kill() {
    server_->Signal(SIGKILL);
    ASSERT_EQ(server_->WaitForExit(), -SIGKILL);
  }
  void SetUp() override { Start(); }

  const ScratchDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
};

// A sleep that does not connect would take until the test's timeout.
TEST_F(RestartTest, SleepsUntilTheServerIsBack) {
  const auto channel = MakeChannel(server_->address(), {});
  ASSERT_TRUE(channel.ok()) << channel.status();
  SleepUntilConnected(**channel, absl::Hours(1));
  ASSERT_EQ((*channel)->GetState(/*try_to_connect=*/false), GRPC_CHANNEL_READY);
  Kill();
  while ((*channel)->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY) {
    SleepUntilConnected(**channel, absl::Milliseconds(10));
  }
  Start();
  SleepUntilConnected(**channel, absl::Hours(1));
  EXPECT_EQ((*channel)->GetState(/*try_to_connect=*/false), GRPC_CHANNEL_READY);
}

TEST_F(RestartTest, AnExecutionOutlastsIt) {
  absl::StatusOr<Client> client = Client::Connect(server_->address(), {.max_attempts = 1000});
  ASSERT_TRUE(client.ok()) << client.status();
  const uint32_t values[] = {1, 2};
  const auto execute = [&] {
    return client->Execute(ArgMax(2), std::as_bytes(std::span(values))).status();
  };
  EXPECT_EQ(execute(), absl::OkStatus());
  Kill();
  std::thread caller([&] { EXPECT_EQ(execute(), absl::OkStatus()); });
  Start();
  caller.join();
}

// gRPC would give both clients one connection, whose next attempt is up to 2 s away.
TEST_F(RestartTest, AClientOfTheNewServerDoesNotWaitForOneOfTheOld) {
  absl::StatusOr<Client> old = Client::Connect(server_->address(), {.max_attempts = 6});
  ASSERT_TRUE(old.ok()) << old.status();
  Kill();
  const uint32_t values[] = {1, 2};
  const auto execute = [&](Client& client) {
    return client.Execute(ArgMax(2), std::as_bytes(std::span(values))).status();
  };
  EXPECT_EQ(execute(*old).code(), absl::StatusCode::kUnavailable);
  Start();
  absl::StatusOr<Client> anew = Client::Connect(server_->address(), {.max_attempts = 1});
  ASSERT_TRUE(anew.ok()) << anew.status();
  EXPECT_EQ(execute(*anew), absl::OkStatus());
}

}  // namespace
}  // namespace opmill
