#include "server/observe/recent_errors.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

constexpr size_t kMost = RecentErrors::kMost;

std::vector<std::string> Sentences(const RecentErrors& errors) {
  std::vector<std::string> sentences;
  for (const RecentError& error : errors.All()) sentences.push_back(error.sentence);
  return sentences;
}

TEST(RecentErrors, HaveTheLatestFirst) {
  RecentErrors errors;
  const absl::Time before = absl::Now();
  errors.Add("Execute", InvalidField("k", "k (9) is larger than 4."));
  errors.Add("ModelInfer", absl::UnavailableError("draining"));
  const std::vector<RecentError> all = errors.All();
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].rpc, "ModelInfer");
  EXPECT_EQ(all[0].code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(all[0].field, "");
  EXPECT_EQ(all[1].field, "k");
  EXPECT_EQ(all[1].sentence, "k (9) is larger than 4.");
  EXPECT_EQ(all[1].count, 1);
  EXPECT_GE(all[1].last, before);
  EXPECT_GE(all[0].last, all[1].last);
}

TEST(RecentErrors, LeaveOutSuccessAndCancelledCalls) {
  RecentErrors errors;
  errors.Add("Execute", absl::OkStatus());
  errors.Add("Execute", absl::CancelledError("The caller is gone."));
  EXPECT_TRUE(errors.All().empty());
}

TEST(RecentErrors, KeepTheLatestOnly) {
  RecentErrors errors;
  for (size_t i = 0; i < 3 * kMost; ++i) {
    errors.Add("Execute", absl::InternalError(absl::StrCat(i)));
  }
  std::vector<std::string> expected;
  for (size_t i = 0; i < kMost; ++i) expected.push_back(absl::StrCat(3 * kMost - 1 - i));
  EXPECT_EQ(Sentences(errors), expected);
}

TEST(RecentErrors, CountEqualOnesWithoutDisplacingOthers) {
  RecentErrors errors;
  errors.Add("Execute", absl::InternalError("rare"));
  for (int i = 0; i < 1000; ++i) errors.Add("Execute", absl::InternalError("often"));
  EXPECT_EQ(Sentences(errors), (std::vector<std::string>{"often", "rare"}));
  EXPECT_EQ(errors.All()[0].count, 1000);
  errors.Add("Execute", absl::InternalError("rare"));
  EXPECT_EQ(Sentences(errors), (std::vector<std::string>{"rare", "often"}));
  EXPECT_EQ(errors.All()[0].count, 2);
  // These differ in the code, the RPC, and the field.
  errors.Add("Execute", absl::UnknownError("rare"));
  errors.Add("ModelInfer", absl::InternalError("rare"));
  errors.Add("Execute", WithField(absl::InternalError("rare"), "k"));
  EXPECT_EQ(errors.All().size(), 5);
}

TEST(RecentErrors, AreBounded) {
  RecentErrors errors;
  const std::string large(1 << 20, 'z');
  for (size_t i = 0; i < 2 * kMost; ++i) {
    const std::string text = absl::StrCat(i, large);
    errors.Add("Execute", WithField(absl::InternalError(text), text));
  }
  for (const RecentError& error : errors.All()) {
    EXPECT_EQ(error.sentence.size(), RecentErrors::kMostSentenceBytes + 3);
    EXPECT_EQ(error.field.size(), RecentErrors::kMostFieldBytes + 3);
  }
}

TEST(RecentErrors, CountThoseOfAllThreads) {
  RecentErrors errors;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&errors, i] {
      for (int k = 0; k < 500; ++k) {
        errors.Add("Execute", absl::InternalError("all"));
        errors.Add("Execute", absl::InternalError(absl::StrCat(i)));
        EXPECT_LE(errors.All().size(), 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0;
  for (const RecentError& error : errors.All()) {
    EXPECT_EQ(error.count, error.sentence == "all" ? 2000 : 500);
    sum += error.count;
  }
  EXPECT_EQ(sum, 4000);
}

TEST(ShortenedSentence, CutsBetweenCharacters) {
  EXPECT_EQ(ShortenedSentence("", 4), "");
  EXPECT_EQ(ShortenedSentence("four", 4), "four");
  EXPECT_EQ(ShortenedSentence("fives", 4), "five...");
  EXPECT_EQ(ShortenedSentence("xyz\xC3\xA4", 5), "xyz\xC3\xA4");
  EXPECT_EQ(ShortenedSentence("xyz\xC3\xA4", 4), "xyz...");
  EXPECT_EQ(ShortenedSentence("anything", 0), "...");
}

TEST(ShortenedSentence, LeavesLittleOfLongHexadecimalNumbers) {
  const std::string digits(64, 'a');
  const std::string left = std::string(RecentErrors::kMostDigits, 'a') + "...";
  EXPECT_EQ(ShortenedSentence(digits, 100), left);
  EXPECT_EQ(ShortenedSentence("It has " + digits + ", not " + digits + ".", 400),
            "It has " + left + ", not " + left + ".");
  EXPECT_EQ(ShortenedSentence(digits.substr(0, 32), 100), left);
  EXPECT_EQ(ShortenedSentence(digits.substr(0, 31), 100), digits.substr(0, 31));
  EXPECT_EQ(ShortenedSentence("0123456789ABCDEFabcdef0123456789!", 100), "0123456789AB...!");
  // Also where the text is cut.
  for (size_t most = 0; most < 80; ++most) {
    const std::string text = ShortenedSentence("It has " + digits + ", not another.", most);
    EXPECT_LE(text.size(), most + 3);
    EXPECT_FALSE(absl::StrContains(text, std::string(RecentErrors::kMostDigits + 1, 'a'))) << text;
  }
}

}  // namespace
}  // namespace opmill
