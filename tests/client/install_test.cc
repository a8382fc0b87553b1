// Whether another project can build on what `cmake --install` leaves, and call a real server with
// it.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

// What the command printed, or "" and a failure of the test with it.
std::string OutputOf(const std::string& command, const ScratchDirectory& scratch) {
  const std::filesystem::path log = scratch.path() / "log";
  const int status = std::system(absl::StrCat(command, " >", log.string(), " 2>&1").c_str());
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_EQ(status, 0) << command << "\n" << text.str();
  return status == 0 ? text.str() : "";
}

TEST(InstalledClient, ServesAnotherProject) {
  const ScratchDirectory scratch;
  const std::string prefix = (scratch.path() / "prefix").string();
  const std::string build = (scratch.path() / "build").string();
  OutputOf(absl::StrCat(OPMILL_CMAKE " --install " OPMILL_BUILD_DIRECTORY " --prefix ", prefix),
           scratch);
  OutputOf(absl::StrCat(OPMILL_CMAKE " -S " OPMILL_CONSUMER_DIRECTORY " -B ", build,
                        " -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=", prefix),
           scratch);
  OutputOf(absl::StrCat(OPMILL_CMAKE " --build ", build), scratch);

  const auto server = ServerProcess::Start({"--device=reference"});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(OutputOf(absl::StrCat(build, "/consumer ", (*server)->address()), scratch), "6\n");
  EXPECT_EQ(
      OutputOf(absl::StrCat(prefix, "/bin/opmill health --server ", (*server)->address()), scratch),
      "SERVING\n");
}

}  // namespace
}  // namespace opmill
