#include "server/config/caller_limits.h"

#include <string>

#include "gtest/gtest.h"

namespace opmill {
namespace {

std::string Parsed(absl::string_view text) {
  CallerLimits limits;
  std::string error;
  return AbslParseFlag(text, &limits, &error) ? AbslUnparseFlag(limits) : error;
}

TEST(CallerLimits, AreReadAndWritten) {
  EXPECT_EQ(Parsed(""), "");
  EXPECT_EQ(Parsed("executions=64,bytes=2GiB,rate=1000/s"), "executions=64,bytes=2GiB,rate=1000/s");
  EXPECT_EQ(Parsed(" rate = 0.5 , executions=1"), "executions=1,rate=0.5/s");
  EXPECT_EQ(Parsed("bytes=1024"), "bytes=1KiB");
}

TEST(CallerLimits, AreRefusedWithASentence) {
  for (const char* text :
       {"executions=0", "executions", "executions=-1", "executions=4294967296"}) {
    EXPECT_EQ(Parsed(text), "executions must be a number of at least 1.") << text;
  }
  for (const char* text : {"rate=0", "rate=-1/s", "rate=nan", "rate=inf", "rate=5/m", "rate="}) {
    EXPECT_EQ(
        Parsed(text),
        "rate must be a number of executions per second, at least 0.001 and at most 1e9, such "
        "as 1000/s.")
        << text;
  }
  EXPECT_EQ(Parsed("bytes=0"), "bytes must be at least 1.");
  EXPECT_TRUE(Parsed("bytes=much").starts_with("bytes: ")) << Parsed("bytes=much");
  EXPECT_EQ(Parsed("streams=3"), "\"streams\" is not one of executions, bytes and rate.");
}

}  // namespace
}  // namespace opmill
