#include "server/network/call_budget.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace opmill {
namespace {

using Account = CallBudget::Account;
using Closing = CallBudget::Closing;
using Excess = CallBudget::Excess;

constexpr uint64_t kCall = CallBudget::kBytesOfCall;

class CallBudgetTest : public testing::Test {
 protected:
  ~CallBudgetTest() override {
    for (Account* const account : accounts_) budget_.Close(account);
  }

  Account& Open(const std::string& peer, const std::string& address) {
    accounts_.push_back(budget_.Open(peer, address, now_));
    return *accounts_.back();
  }
  // Begins calls until a connection must be closed, and returns how many it has begun.
  int BeginMany(Account& account, int most, std::optional<Closing>& closing) {
    for (int i = 0; i < most; ++i) {
      closing = budget_.Begin(account, now_);
      if (closing.has_value()) return i + 1;
    }
    return most;
  }
  void CompleteMany(Account& account, int count) {
    for (int i = 0; i < count; ++i) budget_.End(account, kCall, /*is_completed=*/true, now_);
  }

  void Refill() { now_ += absl::Seconds(8); }

  absl::Time now_ = absl::UnixEpoch();
  CallBudget budget_{/*max_open_bytes=*/400 * kCall, /*max_calls_per_connection=*/100};
  std::vector<Account*> accounts_;
};

TEST_F(CallBudgetTest, ClosesAConnectionWithTwiceTheCallsThatItMayHave) {
  std::optional<Closing> closing;
  EXPECT_EQ(BeginMany(Open("a:1", "a"), 1000, closing), 201);
  EXPECT_EQ(closing->peer, "a:1");
  EXPECT_EQ(closing->excess, Excess::kOpenCalls);
}

TEST_F(CallBudgetTest, ClosesTheConnectionWhoseCallsCostMost) {
  std::optional<Closing> closing;
  Account& most = Open("a:1", "a");
  EXPECT_EQ(BeginMany(most, 150, closing), 150);
  EXPECT_EQ(BeginMany(Open("a:2", "a"), 140, closing), 140);
  Refill();
  Account& other = Open("b:1", "b");
  EXPECT_EQ(BeginMany(other, 110, closing), 110);
  closing = budget_.Begin(other, now_);
  ASSERT_TRUE(closing.has_value());
  EXPECT_EQ(closing->peer, "a:1");
  CompleteMany(most, 150);
  EXPECT_EQ(BeginMany(other, 80, closing), 80);
}

TEST_F(CallBudgetTest, CallsOfAClosedConnectionCountUntilTheyEnd) {
  std::optional<Closing> closing;
  Account& first = Open("a:1", "a");
  EXPECT_EQ(BeginMany(first, 160, closing), 160);
  Refill();
  EXPECT_EQ(BeginMany(Open("a:2", "a"), 1000, closing), 141);
  EXPECT_EQ(closing->peer, "a:1");
  // A connection with few calls has none to give.
  Account& small = Open("a:3", "a");
  EXPECT_EQ(budget_.Begin(small, now_)->peer, "a:2");
  EXPECT_EQ(BeginMany(small, 15, closing), 15);
  EXPECT_EQ(budget_.Begin(small, now_)->peer, "a:3");
  CompleteMany(first, 160);
  EXPECT_EQ(BeginMany(Open("a:4", "a"), 100, closing), 100);
}

TEST_F(CallBudgetTest, AnAddressHasThreeQuarters) {
  std::optional<Closing> closing;
  EXPECT_EQ(BeginMany(Open("a:1", "a"), 160, closing), 160);
  Refill();
  EXPECT_EQ(BeginMany(Open("a:2", "a"), 1000, closing), 141);
  EXPECT_EQ(closing->peer, "a:1");
  EXPECT_EQ(BeginMany(Open("b:1", "b"), 90, closing), 90);
}

TEST_F(CallBudgetTest, MetadataCounts) {
  Account& account = Open("a:1", "a");
  EXPECT_FALSE(budget_.Begin(account, now_).has_value());
  EXPECT_FALSE(budget_.AddMetadata(account, 299 * kCall, now_).has_value());
  Refill();
  EXPECT_EQ(budget_.AddMetadata(account, 1, now_)->peer, "a:1");
}

// Address "a" abandons all that it may.
class ExhaustedCallBudgetTest : public CallBudgetTest {
 protected:
  ExhaustedCallBudgetTest() {
    Account& account = Open("a:1", "a");
    for (int i = 0; i < 300; ++i) {
      EXPECT_FALSE(budget_.Begin(account, now_).has_value());
      budget_.End(account, kCall, /*is_completed=*/false, now_);
    }
  }
};

TEST_F(ExhaustedCallBudgetTest, AConnectionHasSixteen) {
  std::optional<Closing> closing;
  EXPECT_EQ(BeginMany(Open("a:2", "a"), 1000, closing), 17);
  EXPECT_EQ(closing->peer, "a:2");
  EXPECT_EQ(closing->excess, Excess::kAbandonedCalls);
  // The one that has abandoned calls has none.
  EXPECT_EQ(budget_.Begin(*accounts_.front(), now_)->peer, "a:1");
  // Other addresses are not affected.
  EXPECT_EQ(BeginMany(Open("b:1", "b"), 60, closing), 60);
}

TEST_F(ExhaustedCallBudgetTest, TheConnectionsOfAFloodHaveOne) {
  std::optional<Closing> closing;
  Account& earlier = Open("a:2", "a");
  for (int i = 0; i < 126; ++i) Open("a:3", "a");
  EXPECT_EQ(BeginMany(Open("a:4", "a"), 1000, closing), 2);
  EXPECT_EQ(BeginMany(earlier, 1000, closing), 17);
  now_ += absl::Seconds(0.2);
  EXPECT_EQ(BeginMany(Open("a:5", "a"), 1000, closing), 17);
}

TEST_F(ExhaustedCallBudgetTest, TheAllowanceRefills) {
  Account& account = Open("a:2", "a");
  std::optional<Closing> closing;
  now_ += absl::Seconds(4);
  EXPECT_EQ(BeginMany(account, 1000, closing), 151);
}

TEST_F(ExhaustedCallBudgetTest, MetadataAreTakenFromTheAllowance) {
  Account& account = Open("a:2", "a");
  EXPECT_FALSE(budget_.Begin(account, now_).has_value());
  EXPECT_FALSE(budget_.AddMetadata(account, 15 * kCall, now_).has_value());
  EXPECT_EQ(budget_.AddMetadata(account, 1, now_)->excess, Excess::kAbandonedCalls);
}

TEST_F(CallBudgetTest, AnAddressMaySendSomeControlFramesAndAConnectionAFew) {
  Account& flooding = Open("a:1", "a");
  EXPECT_TRUE(budget_.AllowControlFrames(flooding, 32768, now_));
  EXPECT_FALSE(budget_.AllowControlFrames(flooding, 1, now_));
  EXPECT_TRUE(budget_.AllowControlFrames(Open("a:2", "a"), 64, now_));
  EXPECT_FALSE(budget_.AllowControlFrames(*accounts_.back(), 1, now_));
  EXPECT_TRUE(budget_.AllowControlFrames(Open("b:1", "b"), 1000, now_));
  now_ += absl::Seconds(1);
  EXPECT_TRUE(budget_.AllowControlFrames(flooding, 4000, now_));
}

TEST_F(CallBudgetTest, OpenCallsAreTakenFromTheAllowanceUntilTheyComplete) {
  std::optional<Closing> closing;
  Account& account = Open("a:1", "a");
  EXPECT_EQ(BeginMany(account, 150, closing), 150);
  CompleteMany(account, 150);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(BeginMany(Open("a:2", "a"), 150, closing), 150);
  }
  EXPECT_FALSE(closing.has_value());
}

TEST_F(ExhaustedCallBudgetTest, CompletedCallsEarnOpenOnes) {
  Account& account = Open("a:2", "a");
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(budget_.Begin(account, now_).has_value());
    budget_.End(account, kCall, /*is_completed=*/true, now_);
  }
  std::optional<Closing> closing;
  EXPECT_EQ(BeginMany(account, 1000, closing), 67);
  EXPECT_EQ(closing->peer, "a:2");
}

}  // namespace
}  // namespace opmill
