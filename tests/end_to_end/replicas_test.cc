// One client, and several real servers that are stopped and restarted under load.

#include <optional>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "tests/end_to_end/replicas_fixture.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

class ReplicasTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(replicas_.StartAll());
    absl::StatusOr<Client> client = Client::Connect(
        absl::StrCat(replicas_.address(0), ",", replicas_.address(1), ",", replicas_.address(2)));
    ASSERT_TRUE(client.ok()) << client.status();
    client_.emplace(*std::move(client));
  }

  Replicas replicas_;
  std::optional<Client> client_;
};

TEST_F(ReplicasTest, ShareTheLoad) {
  Load load(*client_);
  load.AwaitMore(60);
  load.Stop();
  EXPECT_EQ(load.failures(), "");
  for (size_t i = 0; i < kReplicas; ++i) EXPECT_GE(replicas_.ExecutedBy(i), 10u) << i;
}

TEST_F(ReplicasTest, NoCallFailsWhileAllAreRestartedInTurn) {
  Load load(*client_);
  replicas_.RestartInTurn([&] { load.AwaitMore(30); });
  load.Stop();
  EXPECT_EQ(load.failures(), "");
}

TEST_F(ReplicasTest, NoCallFailsWhenOneIsKilled) {
  Load load(*client_);
  load.AwaitMore(30);
  replicas_.Kill(1);
  load.AwaitMore(100);
  load.Stop();
  EXPECT_EQ(load.failures(), "");
}

TEST_F(ReplicasTest, ReportThatAllAreDown) {
  for (size_t i = 0; i < kReplicas; ++i) replicas_.Kill(i);
  const uint32_t values[] = {1, 2};
  const auto execute = [&](absl::Duration timeout) {
    return client_->Execute(ArgMax(2), std::as_bytes(std::span(values)), {.timeout = timeout})
        .status();
  };
  EXPECT_EQ(execute(absl::InfiniteDuration()).code(), absl::StatusCode::kUnavailable);
  const absl::Time begun = absl::Now();
  EXPECT_FALSE(execute(absl::Seconds(1)).ok());
  EXPECT_LT(absl::Now() - begun, absl::Seconds(5));
}

TEST(ClientTargetTest, RefusesAListOfNames) {
  const absl::StatusOr<Client> client = Client::Connect("localhost:1,localhost:2");
  EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("dns:///name:port"));
}

}  // namespace
}  // namespace opmill
