#include "server/access/access_tokens.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr char kAlice[] = "alice-token-0123456789";
constexpr char kBob[] = "bob-token-0123456789abcdef";

std::string Why(const std::string& text) {
  return std::string(AccessTokens::Parse(text).status().message());
}

TEST(AccessTokens, NameTheHolder) {
  const auto tokens = AccessTokens::Parse(
      "# name token\r\n\r\nalice\talice-token-0123456789\r\n  bob   bob-token-0123456789abcdef  \n"
      "bob the-next-token-of-bobs");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), 3u);
  EXPECT_THAT(tokens->NameOf(kAlice), Optional(Eq("alice")));
  EXPECT_THAT(tokens->NameOf(kBob), Optional(Eq("bob")));
  EXPECT_THAT(tokens->NameOf("the-next-token-of-bobs"), Optional(Eq("bob")));
}

TEST(AccessTokens, RejectUnknownTokens) {
  const auto tokens = AccessTokens::Parse(std::string("alice ") + kAlice);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const std::string alice = kAlice;
  for (const std::string& token :
       {std::string(), std::string("alice"), alice + " ", " " + alice, alice.substr(1),
        alice.substr(0, alice.size() - 1), alice + alice, std::string(kBob), alice + '\0'}) {
    EXPECT_EQ(tokens->NameOf(token), std::nullopt) << token;
  }
}

TEST(AccessTokens, ErrorsNameTheLineButNotTheToken) {
  EXPECT_EQ(Why(""), "it holds no token");
  EXPECT_EQ(Why("# alice alice-token-0123456789"), "it holds no token");
  EXPECT_EQ(Why("\nalice"), "line 2 has 1 word; it must have a name and a token.");
  EXPECT_EQ(Why("alice alice-token-0123456789 # hers"),
            "line 1 has 4 words; it must have a name and a token.");
  EXPECT_EQ(Why("alice 123456789012345"), "line 1 has a token of 15 characters; the least is 16.");
  EXPECT_TRUE(AccessTokens::Parse("alice 1234567890123456").ok());
  EXPECT_EQ(Why("alice 12345678901234567\xC3\xA4"),
            "line 1 has a token with characters that are not printable ASCII.");
  EXPECT_EQ(Why("alice alice-token-0123456789\nbob alice-token-0123456789"),
            "line 2 repeats the token of an earlier line.");
}

}  // namespace
}  // namespace opmill
