// How `opmill` is used from scripts, shells and programs: errors, waiting, completion, signals.
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/shell.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class UsageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::Start({"--device=reference"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = server->release();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  Finished Shell(const std::string& command) const {
    return RunShell(scratch_.path(), absl::StrCat("OPMILL_SERVER=", server_->address()), command);
  }
  Finished Run(const std::string& arguments) const { return Shell("$OPMILL " + arguments); }

  static ServerProcess* server_;
  const ScratchDirectory scratch_;
};
ServerProcess* UsageTest::server_ = nullptr;

// While the server is stopped in the middle of the execution, so that the run cannot end before.
TEST_F(UsageTest, LeavesNoFileWhenASignalEndsARun) {
  constexpr uint32_t kColumns = 8'000'000;
  {
    std::ofstream file(scratch_.path() / "x.npy", std::ios::binary);
    file << MakeNpyHeader(v1::DATA_TYPE_FLOAT32, {1, kColumns})
         << std::string(kColumns * sizeof(float), '\0');
  }
  const std::pair<const char*, int> signals[] = {{"TERM", 143}, {"INT", 130}, {"HUP", 129}};
  for (const auto& [name, exit_code] : signals) {
    // Shells let the jobs in their background ignore SIGINT.
    const Finished done = Shell(absl::StrCat(
        "env --default-signal=INT $OPMILL run top_k --input x.npy --axis 1 --k ", kColumns,
        " --output v.npy --indices i.npy & run=$!; "
        "until ls *.part >/dev/null 2>&1; do kill -0 $run || exit 99; done; kill -STOP ",
        server_->pid(), "; ls *.part >seen; kill -", name, " $run; wait $run; code=$?; kill -CONT ",
        server_->pid(), "; ls; exit $code"));
    EXPECT_EQ(done.exit_code, exit_code) << name << done.err;
    EXPECT_THAT(ReadWhole(scratch_.path() / "seen"), HasSubstr("v.npy.")) << name;
    EXPECT_EQ(done.out, "seen\nx.npy\n") << name;
    EXPECT_THAT(done.err, Not(HasSubstr("opmill:"))) << name;  // the shell's word alone
  }
}

}  // namespace
}  // namespace opmill
