#include "server/execution/caller_account.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/execution/token_bucket.h"
#include "tests/support/quantities.h"

namespace opmill {
namespace {

TEST(CallerIdentity, IsANameElseAnAddress) {
  EXPECT_EQ(CallerIdentity("ann", "ipv4:10.0.0.7:51342"), "name:ann");
  EXPECT_EQ(CallerIdentity("", "ipv4:10.0.0.7:51342"), "address:10.0.0.7");
  EXPECT_EQ(CallerIdentity("", "ipv4:10.0.0.7:2"), CallerIdentity("", "ipv4:10.0.0.7:1"));
  EXPECT_EQ(CallerIdentity("", "ipv6:[::1]:51342"), "address:[::1]");
  EXPECT_EQ(CallerIdentity("", "ipv6:%5B::1%5D:51342"), "address:[::1]");
  EXPECT_EQ(CallerIdentity("", "unix:"), "address:unix");
  EXPECT_EQ(CallerIdentity("", "unix:/run/x"), "address:unix");
  EXPECT_EQ(CallerIdentity("", "test"), "address:test");
  EXPECT_NE(CallerIdentity("10.0.0.7", ""), CallerIdentity("", "ipv4:10.0.0.7:1"));
}

class CallerAccountsTest : public testing::Test {
 protected:
  std::shared_ptr<CallerAccount> Find(absl::string_view name, absl::Time now) {
    return accounts_.Find(name, "test", now);
  }
  Statistics statistics_;
  CallerAccounts accounts_{TokenBucket(), statistics_};
};

TEST_F(CallerAccountsTest, FindsTheSameAgain) {
  const auto ann = Find("ann", AtSeconds(0));
  EXPECT_EQ(Find("ann", AtSeconds(0)), ann);
  EXPECT_FALSE(accounts_.several());
  EXPECT_NE(Find("bob", AtSeconds(0)), ann);
  EXPECT_TRUE(accounts_.several());
}

TEST_F(CallerAccountsTest, ForgetsOnlyTheIdle) {
  const auto ann = Find("ann", AtSeconds(0));
  Find("bob", AtSeconds(1));
  EXPECT_EQ(Find("ann", AtSeconds(60)), ann);
  EXPECT_EQ(accounts_.count(), 2u);
  Find("ann", AtSeconds(62));
  EXPECT_EQ(accounts_.count(), 1u) << "bob has done nothing for a minute";
  Find("cid", AtSeconds(1000));
  EXPECT_EQ(Find("ann", AtSeconds(1001)), ann) << "an execution of ann holds it";
}

TEST_F(CallerAccountsTest, KeepsABoundedNumberOfIdleOnes) {
  const auto ann = Find("ann", AtSeconds(0));
  for (int i = 0; i < 10000; ++i) Find(absl::StrCat("name", i), AtSeconds(1));
  EXPECT_LE(accounts_.count(), CallerAccounts::kMostIdle + 1);
  EXPECT_EQ(Find("ann", AtSeconds(2)), ann);
  EXPECT_EQ(statistics_.callers().size(), Statistics::kMostCallerNames + 2);
}

TEST_F(CallerAccountsTest, ForgetsTheIdleBetweenManyInUse) {
  std::vector<std::shared_ptr<CallerAccount>> in_use;
  for (int i = 0; i < 3000; ++i) in_use.push_back(Find(absl::StrCat("used", i), AtSeconds(1)));
  for (int i = 0; i < 10000; ++i) Find(absl::StrCat("idle", i), AtSeconds(2));
  EXPECT_LE(accounts_.count(), in_use.size() + CallerAccounts::kMostIdle);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(Find(absl::StrCat("used", i), AtSeconds(3)), in_use[static_cast<size_t>(i)]);
  }
}

TEST_F(CallerAccountsTest, RemembersACallerUntilItMayBeginAgain) {
  CallerAccounts slow(TokenBucket(0.002), statistics_);
  EXPECT_EQ(slow.Find("ann", "test", AtSeconds(0))->CountBegin(AtSeconds(0)), absl::ZeroDuration());
  slow.Find("bob", "test", AtSeconds(300));
  EXPECT_EQ(slow.Find("ann", "test", AtSeconds(300))->CountBegin(AtSeconds(300)),
            absl::Seconds(200));
  slow.Find("bob", "test", AtSeconds(800));
  EXPECT_EQ(slow.count(), 1u) << "ann would begin like a new caller";
}

TEST(TokenBucket, TakesBackWhatDidNotHappen) {
  TokenBucket bucket(2);
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
  bucket.Return();
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::Milliseconds(500));
  for (int i = 0; i < 5; ++i) bucket.Return();
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::Milliseconds(500)) << "no more than at first";
}

TEST(TokenBucket, WithoutARateHasNoLimit) {
  TokenBucket bucket;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
}

TEST(TokenBucket, LetsASecondsWorthPassAndThenItsRate) {
  TokenBucket bucket(10);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(bucket.Take(AtSeconds(5)), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(AtSeconds(5)), absl::Milliseconds(100));
  EXPECT_EQ(bucket.Take(AtSeconds(5.05)), absl::Milliseconds(50));
  EXPECT_EQ(bucket.Take(AtSeconds(4)), absl::Milliseconds(50))
      << "a clock that goes back changes nothing";
  EXPECT_EQ(bucket.Take(AtSeconds(5.15)), absl::ZeroDuration());
  int passed = 0;
  for (int i = 0; i < 100; ++i)
    passed += bucket.Take(AtSeconds(100)) == absl::ZeroDuration() ? 1 : 0;
  EXPECT_EQ(passed, 10) << "a pause does not add up";
}

TEST(TokenBucket, HasRatesBelowOne) {
  TokenBucket bucket(0.5);
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(AtSeconds(0)), absl::Seconds(2));
  EXPECT_EQ(bucket.Take(AtSeconds(2)), absl::ZeroDuration());
}

}  // namespace
}  // namespace opmill
