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
  void AbandonMany(Account& account, int count) {
    for (int i = 0; i < count; ++i) {
      EXPECT_FALSE(budget_.Begin(account, now_).has_value());
      budget_.Abandon(account, kCall, now_);
      budget_.End(account, kCall, /*is_completed=*/false);
    }
  }

  absl::Duration now_ = absl::Hours(1);
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
  EXPECT_EQ(BeginMany(Open("a:1", "a"), 150, closing), 150);
  EXPECT_EQ(BeginMany(Open("a:2", "a"), 140, closing), 140);
  Account& other = Open("b:1", "b");
  EXPECT_EQ(BeginMany(other, 110, closing), 110);
  closing = budget_.Begin(other, now_);
  ASSERT_TRUE(closing.has_value());
  EXPECT_EQ(closing->peer, "a:1");
  // Its calls no longer count.
  EXPECT_EQ(BeginMany(other, 80, closing), 80);
}

TEST_F(CallBudgetTest, AnAddressHasThreeQuarters) {
  std::optional<Closing> closing;
  EXPECT_EQ(BeginMany(Open("a:1", "a"), 160, closing), 160);
  EXPECT_EQ(BeginMany(Open("a:2", "a"), 1000, closing), 141);
  EXPECT_EQ(closing->peer, "a:1");
}

TEST_F(CallBudgetTest, MetadataCounts) {
  Account& account = Open("a:1", "a");
  EXPECT_FALSE(budget_.Begin(account, now_).has_value());
  EXPECT_FALSE(budget_.AddMetadata(account, 299 * kCall).has_value());
  EXPECT_EQ(budget_.AddMetadata(account, 1)->peer, "a:1");
}

TEST_F(CallBudgetTest, AfterTooManyAbandonedCallsAConnectionHasSixteen) {
  AbandonMany(Open("a:1", "a"), 512);
  std::optional<Closing> closing;
  // The allowance refills.
  now_ += absl::Seconds(1);
  AbandonMany(Open("a:2", "a"), 256);
  Account& abandoning = *accounts_.back();
  budget_.Abandon(abandoning, kCall, now_);
  EXPECT_EQ(budget_.Begin(abandoning, now_)->excess, Excess::kAbandonedCalls);
  EXPECT_EQ(BeginMany(Open("a:3", "a"), 1000, closing), 17);
  EXPECT_EQ(closing->peer, "a:3");
  // Other addresses are not affected.
  EXPECT_EQ(BeginMany(Open("b:1", "b"), 90, closing), 90);
}

TEST_F(CallBudgetTest, CompletedCallsEarnOpenOnes) {
  Account& earning = Open("a:1", "a");
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(budget_.Begin(earning, now_).has_value());
    budget_.End(earning, kCall, /*is_completed=*/true);
  }
  Account& other = Open("a:2", "a");
  AbandonMany(other, 512);
  budget_.Abandon(other, kCall, now_);
  std::optional<Closing> closing;
  EXPECT_EQ(BeginMany(earning, 1000, closing), 67);
  EXPECT_EQ(closing->peer, "a:1");
}

}  // namespace
}  // namespace opmill
