#include "tests/support/server_process.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

TEST(ServerProcess, ServesAndDrainsAtSigterm) {
  const auto server = ServerProcess::Start({"--device=reference"});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), ::testing::MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  EXPECT_EQ((*server)->WaitForExit(absl::ZeroDuration()), std::nullopt);
  EXPECT_GT((*server)->PeakMemoryBytes(), uint64_t{1} << 20);
  (*server)->Signal(SIGTERM);
  EXPECT_EQ((*server)->WaitForExit(), 0);
  EXPECT_TRUE((*server)->WaitForLine(R"("event":"stopped")").has_value());
  EXPECT_EQ((*server)->WaitForLine("a text that is nowhere"), std::nullopt);
}

TEST(ServerProcess, IsKilledByItsDestructor) {
  pid_t pid = 0;
  {
    const auto server = ServerProcess::Start({"--device=reference"});
    ASSERT_TRUE(server.ok()) << server.status();
    pid = (*server)->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(ServerProcess, ReportsTheLogOfAServerThatDoesNotStart) {
  const auto server = ServerProcess::Start({"--device=abacus"});
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()), ::testing::HasSubstr("abacus"));
}

}  // namespace
}  // namespace opmill
