#include "server/network/connections.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/socket.h>
#include <unistd.h>

#include "server/network/connection_socket_posix.h"
#endif

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

using Reason = Connections::Reason;

// The socket of a connection, as seen and controlled by the test.
struct Line {
  std::optional<ConnectionSocket::Traffic> traffic = ConnectionSocket::Traffic();
  bool closed_by_server = false;
};

class FakeSocket final : public ConnectionSocket {
 public:
  explicit FakeSocket(std::shared_ptr<Line> line) : line_(std::move(line)) {}
  std::optional<Traffic> ReadTraffic() override { return line_->traffic; }
  void Close() override { line_->closed_by_server = true; }

 private:
  const std::shared_ptr<Line> line_;
};

class ConnectionsTest : public testing::Test {
 protected:
  // Null if it was refused.
  std::shared_ptr<Line> Connect(const std::string& address, int port) {
    auto line = std::make_shared<Line>();
    const ConnectionPeer peer = {.name = absl::StrCat("ipv4:", address, ":", port),
                                 .address = address};
    const bool admitted = connections_.Admit(peer, std::make_unique<FakeSocket>(line), now_);
    return admitted ? line : nullptr;
  }
  std::shared_ptr<Connection> Call(const std::string& address, int port) {
    return connections_.Find(absl::StrCat("ipv4:", address, ":", port));
  }
  void Pass(absl::Duration time) {
    now_ += time;
    connections_.Check(now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  Connections connections_{Limits{.max_connections = 4, .max_connections_per_address = 3}};
};

TEST_F(ConnectionsTest, ClosesOneThatSendsMuchWithoutAnAnswer) {
  const auto line = Connect("10.0.0.1", 1);
  line->traffic = {.received_bytes = 2 * kMebibyte};
  Pass(absl::Milliseconds(20));
  EXPECT_FALSE(line->closed_by_server);
  line->traffic = {.received_bytes = 2 * kMebibyte + 1};
  Pass(absl::Milliseconds(20));
  EXPECT_TRUE(line->closed_by_server);
  EXPECT_EQ(connections_.closed(Reason::kFlood), 1);
  EXPECT_EQ(connections_.open(now_), 0);
}

TEST_F(ConnectionsTest, AnAnswerResetsTheCount) {
  const auto line = Connect("10.0.0.1", 1);
  for (uint64_t i = 1; i <= 100; ++i) {
    line->traffic = {.received_bytes = i * 2 * kMebibyte, .answered_bytes = i * 13};
    Pass(absl::Milliseconds(20));
  }
  EXPECT_FALSE(line->closed_by_server);
}

TEST_F(ConnectionsTest, EachOpenCallMaySendMoreAhead) {
  const auto line = Connect("10.0.0.1", 1);
  const auto first = Call("10.0.0.1", 1);
  const auto second = Call("10.0.0.1", 1);
  line->traffic = {.received_bytes = 4 * kMebibyte};
  Pass(absl::Milliseconds(20));
  EXPECT_FALSE(line->closed_by_server);
  line->traffic = {.received_bytes = 5 * kMebibyte};
  Pass(absl::Milliseconds(20));
  EXPECT_TRUE(line->closed_by_server);
}

TEST_F(ConnectionsTest, TheLimitIsBoundedHoweverManyCallsAreOpen) {
  const auto line = Connect("10.0.0.1", 1);
  std::vector<std::shared_ptr<Connection>> calls(1000, Call("10.0.0.1", 1));
  line->traffic = {.received_bytes = 64 * kMebibyte + 1};
  Pass(absl::Milliseconds(20));
  EXPECT_TRUE(line->closed_by_server);
}

TEST_F(ConnectionsTest, ConnectionsWithoutCallsShareALimit) {
  const auto one = Connect("10.0.0.1", 1);
  const auto two = Connect("10.0.0.2", 1);
  const auto three = Connect("10.0.0.3", 1);
  for (const auto& line : {one, two, three}) line->traffic = {.received_bytes = 3 * kMebibyte / 2};
  Pass(absl::Milliseconds(20));
  EXPECT_EQ(one->closed_by_server + two->closed_by_server + three->closed_by_server, 1);
}

TEST_F(ConnectionsTest, ClosesAnIncompleteRequest) {
  const auto line = Connect("10.0.0.1", 1);
  const auto idle = Connect("10.0.0.2", 1);
  line->traffic = {.received_bytes = kMebibyte};
  idle->traffic = {.received_bytes = 4096};
  Pass(absl::Milliseconds(4900));
  EXPECT_FALSE(line->closed_by_server);
  Pass(absl::Milliseconds(200));
  EXPECT_TRUE(line->closed_by_server);
  EXPECT_EQ(connections_.closed(Reason::kIncomplete), 1);
  EXPECT_FALSE(idle->closed_by_server);
}

TEST_F(ConnectionsTest, AnUnreadStreamKeepsItsConnection) {
  const auto line = Connect("10.0.0.1", 1);
  const auto call = Call("10.0.0.1", 1);
  line->traffic = {.received_bytes = kMebibyte};
  Pass(absl::Minutes(1));
  EXPECT_FALSE(line->closed_by_server);
}

TEST_F(ConnectionsTest, ClosesTheOldestWithoutARequestForANewConnection) {
  const auto called = Connect("10.0.0.1", 1);
  Call("10.0.0.1", 1);
  now_ += absl::Seconds(1);
  const auto older = Connect("10.0.0.1", 2);
  now_ += absl::Seconds(1);
  const auto newer = Connect("10.0.0.1", 3);
  const auto other = Connect("10.0.0.2", 1);
  now_ += absl::Seconds(1);
  EXPECT_NE(Connect("10.0.0.3", 1), nullptr);
  EXPECT_TRUE(older->closed_by_server);
  EXPECT_FALSE(called->closed_by_server || newer->closed_by_server || other->closed_by_server);
}

TEST_F(ConnectionsTest, AnAddressAtItsLimitLosesOneOfItsOwn) {
  const auto other = Connect("10.0.0.2", 1);
  const auto first = Connect("10.0.0.1", 1);
  now_ += absl::Seconds(1);
  Connect("10.0.0.1", 2);
  Connect("10.0.0.1", 3);
  EXPECT_NE(Connect("10.0.0.1", 4), nullptr);
  EXPECT_TRUE(first->closed_by_server);
  EXPECT_FALSE(other->closed_by_server);
}

TEST_F(ConnectionsTest, ClosesTheLongestIdleIfAllHaveMadeCalls) {
  std::vector<std::shared_ptr<Line>> lines;
  for (int i = 1; i <= 4; ++i) {
    lines.push_back(Connect(absl::StrCat("10.0.0.", i), i));
    Call(absl::StrCat("10.0.0.", i), i);
  }
  const auto busy = Call("10.0.0.1", 1);
  EXPECT_EQ(Connect("10.0.0.9", 9), nullptr);
  EXPECT_EQ(connections_.refused(), 1);
  Pass(absl::Seconds(9));
  EXPECT_EQ(Connect("10.0.0.9", 9), nullptr);
  Call("10.0.0.2", 2);
  Pass(absl::Seconds(2));
  EXPECT_NE(Connect("10.0.0.9", 9), nullptr);
  EXPECT_FALSE(lines[0]->closed_by_server);  // a call is in progress
}

TEST_F(ConnectionsTest, FirstRequestHasADeadlineWhileSlotsAreScarce) {
  const auto called = Connect("10.0.0.1", 1);
  Call("10.0.0.1", 1);
  const auto silent = Connect("10.0.0.2", 1);
  Connect("10.0.0.3", 1);
  Pass(absl::Minutes(1));
  EXPECT_FALSE(silent->closed_by_server);
  Connect("10.0.0.4", 1);
  Pass(absl::Milliseconds(20));
  EXPECT_TRUE(silent->closed_by_server);
  EXPECT_FALSE(called->closed_by_server);
}

TEST_F(ConnectionsTest, IgnoresUnixSockets) {
  auto line = std::make_shared<Line>();
  EXPECT_TRUE(connections_.Admit({.name = "unix:7", .address = "unix", .is_named = false},
                                 std::make_unique<FakeSocket>(line), now_));
  for (int i = 1; i <= 20; ++i) EXPECT_NE(Connect(absl::StrCat("10.0.0.", i), 1), nullptr);
  Pass(absl::Minutes(1));
  EXPECT_FALSE(line->closed_by_server);
}

TEST_F(ConnectionsTest, ForgetsClosedConnections) {
  const auto line = Connect("10.0.0.1", 1);
  EXPECT_EQ(connections_.open(now_), 1);
  line->traffic = std::nullopt;
  EXPECT_EQ(connections_.open(now_), 0);
  EXPECT_EQ(Call("10.0.0.1", 1), nullptr);
  EXPECT_FALSE(line->closed_by_server);
}

TEST_F(ConnectionsTest, APeerThatReconnectsFromItsPortTakesOneSlot) {
  for (int i = 0; i < 20; ++i) ASSERT_NE(Connect("10.0.0.1", 1), nullptr);
  EXPECT_EQ(connections_.open(now_), 1);
  const auto line = Connect("10.0.0.1", 2);
  EXPECT_NE(Connect("10.0.0.1", 3), nullptr);
  EXPECT_FALSE(line->closed_by_server);  // the limit of the address is three
  EXPECT_EQ(connections_.closed(Reason::kRoom), 0);
}

TEST_F(ConnectionsTest, ClosesTheWorstWhenMemoryIsShort) {
  const auto uploader = Connect("10.0.0.1", 1);
  const auto call = Call("10.0.0.1", 1);
  const auto waster = Connect("10.0.0.2", 1);
  const auto waste = Call("10.0.0.2", 1);
  uploader->traffic = {.received_bytes = 900 * kMebibyte, .answered_bytes = 1};
  call->AddPayload(899 * kMebibyte);
  waster->traffic = {.received_bytes = 20 * kMebibyte, .answered_bytes = 1};
  EXPECT_TRUE(connections_.CloseWorst(now_));
  EXPECT_TRUE(waster->closed_by_server);
  EXPECT_FALSE(connections_.CloseWorst(now_));  // the uploader's messages are complete
  uploader->traffic = {.received_bytes = 901 * kMebibyte, .answered_bytes = 2};
  EXPECT_TRUE(connections_.CloseWorst(now_));
  EXPECT_TRUE(uploader->closed_by_server);
  EXPECT_FALSE(connections_.CloseWorst(now_));
}

TEST_F(ConnectionsTest, OpenCallsCountWhenMemoryIsShort) {
  const auto caller = Connect("10.0.0.1", 1);
  const auto call = Call("10.0.0.1", 1);
  const auto silent = Connect("10.0.0.2", 1);
  const std::vector<std::shared_ptr<Connection>> calls(100, Call("10.0.0.2", 1));
  caller->traffic = {.received_bytes = kMebibyte + 1, .answered_bytes = 1};
  silent->traffic = {.received_bytes = 20'000, .answered_bytes = 1};
  EXPECT_TRUE(connections_.CloseWorst(now_));
  EXPECT_TRUE(silent->closed_by_server);
  EXPECT_FALSE(caller->closed_by_server);
}

TEST_F(ConnectionsTest, ClosesIncompleteRequestsFirstWhenMemoryIsShort) {
  const auto caller = Connect("10.0.0.1", 1);
  const auto call = Call("10.0.0.1", 1);
  const auto incomplete = Connect("10.0.0.2", 1);
  caller->traffic = {.received_bytes = 20 * kMebibyte, .answered_bytes = 1};
  incomplete->traffic = {.received_bytes = kMebibyte / 4};
  EXPECT_TRUE(connections_.CloseWorst(now_));
  EXPECT_TRUE(incomplete->closed_by_server);
  EXPECT_FALSE(caller->closed_by_server);
}

TEST_F(ConnectionsTest, FindsAPeerByGrpcsPercentEncodedName) {
  EXPECT_TRUE(connections_.Admit({.name = "ipv6:[::1]:77", .address = "::1"},
                                 std::make_unique<FakeSocket>(std::make_shared<Line>()), now_));
  EXPECT_NE(connections_.Find("ipv6:%5B::1%5D:77"), nullptr);
  EXPECT_NE(connections_.Find("ipv6:[::1]:77"), nullptr);
  EXPECT_EQ(connections_.Find("ipv6:%5B::1%5D:78"), nullptr);
  EXPECT_EQ(connections_.Find("%"), nullptr);
}

TEST_F(ConnectionsTest, KnowsTheUserOfUnixSocketsWhileItIsTheOnlyOne) {
  const auto connect = [this](int number, std::optional<uint32_t> user) {
    const ConnectionPeer peer = {.name = absl::StrCat("unix:", number),
                                 .address = absl::StrCat("unix", number),
                                 .is_named = false,
                                 .user = user};
    EXPECT_TRUE(
        connections_.Admit(peer, std::make_unique<FakeSocket>(std::make_shared<Line>()), now_));
  };
  connect(1, std::nullopt);  // the server's own
  EXPECT_EQ(connections_.UnixUser(), std::nullopt);
  connect(2, 1000);
  connect(3, 1000);
  EXPECT_EQ(connections_.UnixUser(), 1000);
  connect(4, 1001);
  EXPECT_EQ(connections_.UnixUser(), std::nullopt);
  connect(4, 1000);
  EXPECT_EQ(connections_.UnixUser(), std::nullopt) << "a call may be of any of them";
}

#ifdef __linux__
TEST(UnixPeerName, IsNotReused) {
  std::set<std::string> names;
  std::set<int> descriptors;
  for (int i = 0; i < 3; ++i) {
    int ends[2] = {};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    descriptors.insert(ends[0]);
    names.insert(UnixPeerName(ends[0]));
    EXPECT_EQ(UnixPeerName(ends[0]), PeerOf(ends[0])->name);
    close(ends[0]);
    close(ends[1]);
  }
  EXPECT_EQ(descriptors.size(), 1);
  EXPECT_EQ(names.size(), 3);
}
#endif

}  // namespace
}  // namespace opmill
