// The real `opmill` against a real server.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/shell_fixture.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class CommandTest : public ShellTest {
 protected:
  // The file names in the scratch directory, except those of Shell.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
      const std::string name = entry.path().filename().string();
      if (name[0] != '.') names.push_back(name);
    }
    return names;
  }
};

TEST_F(CommandTest, PrintsSmallResults) {
  Save("x.npy", {2, 3}, {1, 2, 3, 30, 20, 10});
  const Finished sum = Run("run reduce --function sum --input x.npy --axes 1");
  EXPECT_EQ(sum.exit_code, 0) << sum.err;
  EXPECT_EQ(sum.out, "[ 6. 60.]\n");
  EXPECT_EQ(Run("run top_k --input x.npy --axis=-1 --k 2").out,
            "values:\n[[ 3.  2.]\n [30. 20.]]\nindices:\n[[2 1]\n [0 1]]\n");
}

TEST_F(CommandTest, WritesFilesOnlyUnderTheirFinalNames) {
  Save("x.npy", {2, 3}, {1, 2, 3, 30, 20, 10});
  const Finished done =
      Run("run top_k --input x.npy --axis 1 --k 2 --output v.npy --indices i.npy");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "values (2, 2) float32 -> v.npy\nindices (2, 2) uint32 -> i.npy\n");
  EXPECT_THAT(Files(), UnorderedElementsAre("x.npy", "v.npy", "i.npy"));
  EXPECT_EQ(Run("run reduce --function max --input v.npy --axes 0,1").out, "30.0\n");
  // Overwrites its own input, which is mapped meanwhile.
  EXPECT_EQ(Run("run sum --input x.npy --axes 0 --keepdims --output x.npy").exit_code, 0);
  EXPECT_EQ(Run("run reduce --function sum --input x.npy --axes 1").out, "[66.]\n");
}

TEST_F(CommandTest, LeavesNoFilesOfAFailedRun) {
  Save("x.npy", {3}, {1, 2, 3});
  std::ofstream(Path("old.npy")) << "old";
  const Finished refused = Run("run top_k --input x.npy --axis 0 --k 9 --output old.npy");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "opmill: --k: k (9) is larger than the size (3) of axis (0).\n");
  EXPECT_EQ(refused.out, "");
  // The second file cannot be written, so the first one is not written either.
  const Finished full = Run(
      "run top_k --input x.npy --axis 0 --k 1 --output old.npy --indices no/such/directory.npy");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("no/such/directory.npy cannot be written"));
  EXPECT_EQ(Read("old.npy"), "old");
  EXPECT_THAT(Files(), UnorderedElementsAre("x.npy", "old.npy"));
}

TEST_F(CommandTest, WritesOnlyToRegularFilesAndThroughLinks) {
  Save("x.npy", {3}, {1, 2, 3});
  std::filesystem::create_directory(Path("folder"));
  const Finished refused =
      Run("run reduce --function sum --input x.npy --axes 0 --output /dev/full");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("/dev/full is not a regular file"));
  EXPECT_EQ(Run("run reduce --function sum --input x.npy --axes 0 --output folder").out,
            "() float32 -> folder/x.npy\n");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  std::ofstream(Path("old.npy")) << "old";
  std::filesystem::create_symlink("old.npy", Path("link.npy"));
  EXPECT_EQ(Run("run sum --input x.npy --keepdims --output link.npy").exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.npy")));
  EXPECT_EQ(Run("run reduce --function sum --input old.npy --axes 0").out, "6.0\n");
}

TEST_F(CommandTest, ExplainsInvalidCommandLines) {
  Save("x.npy", {3}, {1, 2, 3});
  const std::pair<const char*, const char*> cases[] = {
      {"", "opmill VERB"},
      {"rnu", "Did you mean run?"},
      {"run argmin --inptu x.npy", "Did you mean --input?"},
      {"run smu x.npy", "Did you mean sum?"},
      {"run argmin --axes 0",
       "An input is required: a .npy or .npz file, or - for standard input."},
      {"run argmim --input x.npy --axes 0", "Did you mean argmin?"},
      {"run argmin --input x.npy --axes -2 --server 127.0.0.1:1",
       "--axes: axis -2 is out of range for x.npy, which has 1 dimension (axes -1 to 0)."},
      {"run argmin --input x.npy --axes 0 --deadline soon",
       "--deadline: \"soon\" is not a duration"},
      {"info --deadline 5", "write it as 5s, 250ms or 2m. Did you mean 5s?"},
      {"info --deadline 0s", "--deadline: 0s is not above 0."},
      {"info --server unix-abstract:name", "must be host:port"},
      {"run argmin --input x.npy --axes 0 --feature_level 7.0", "no feature level \"7.0\""},
      {"run argmin --input x.npy --axes 0 --indices i.npy", "--indices: Only top_k has indices."},
      {"bench --operator reduce --function sum --axes 0", "--shape: A value is required."},
      {"bench --operator hardmax --shape 4 --axes 0 --concurrency 0",
       "--concurrency: 0 is not a number from 1 to 10000."},
      {"bench --operator hardmax --shape 4 --axes 0 --rpc http", "execute or execute_stream"},
      {"bench --operator hardmax --shape 4 --axes 0 --priority high", "It must be an integer"},
      {"bench --operator hardmax --shape 99999,99999 --axes 0", "at most 4294967295 elements"},
      {"compile", "An operator is required"},
      {"info extra", "takes no argument \"extra\""},
      {"info --server localhost",
       "The server address is \"localhost\"; it must be host:port, for example localhost:50051."},
      {"health --server ::1",
       "The server address is \"::1\"; it must be host:port, for example [::1]:50051."},
      {"info --server 127.0.0.1:99999", "must be host:port"},
      {"info --server http://127.0.0.1:50051", "must be host:port"},
  };
  for (const auto& [arguments, sentence] : cases) {
    const Finished done = Run(arguments);
    EXPECT_EQ(done.exit_code, 2) << arguments;
    EXPECT_THAT(done.err, HasSubstr(sentence)) << arguments;
    EXPECT_EQ(done.out, "") << arguments;
  }
}

TEST_F(CommandTest, ReportsThatNoServerListens) {
  const Finished done = Run("health --server 127.0.0.1:1");
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(done.err, AllOf(HasSubstr("No server answers at 127.0.0.1:1"),
                              HasSubstr("opmill-server --address=127.0.0.1:1")));
}

TEST_F(CommandTest, ExplainsErrorsOfAFile) {
  EXPECT_THAT(Run("run argmin --input none.npy --axes 0").err, HasSubstr("none.npy"));
  std::ofstream(Path("text.npy")) << "hello";
  const Finished done = Run("run argmin --input text.npy --axes 0");
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("text.npy: The file is not a .npy file"));
}

TEST_F(CommandTest, ReportsThatTheDeadlinePassed) {
  Save("x.npy", {1, 4'000'000}, std::vector<float>(4'000'000, 1));
  const Finished done = Run("run reduce --function sum --input x.npy --axes 1 --deadline 2ms");
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_NE(done.err, "");
}

TEST_F(CommandTest, HelpsWithEveryVerb) {
  for (const char* verb : {"run", "demo", "bench", "info", "stats", "health", "compile"}) {
    const Finished page = Run(absl::StrCat("help ", verb));
    EXPECT_EQ(page.exit_code, 0) << verb;
    EXPECT_THAT(page.out, HasSubstr("--server HOST:PORT")) << verb;
    EXPECT_EQ(Run(absl::StrCat(verb, " --help")).out, page.out);
    EXPECT_THAT(Run("help").out, HasSubstr(verb));
  }
}

TEST_F(CommandTest, RunsTheWorkedExamples) {
  const Finished demo = Run("demo");
  EXPECT_EQ(demo.exit_code, 0) << demo.out;
  EXPECT_THAT(demo.out, HasSubstr("17 of 17 examples give the results of their page."));
}

TEST_F(CommandTest, EveryVerbSupportsJson) {
  Save("x.npy", {5}, {NAN, INFINITY, -INFINITY, 1e-45f, 0.5f});
  const std::pair<const char*, const char*> cases[] = {
      {"run top_k --input x.npy --axis 0 --k 5", "outputs"},
      {"run argmax --input x.npy --axes 0 --output \"a\\\"b.npy\"", "statistics"},
      {"demo", "examples"},
      {"info", "limits"},
      {"stats", "operators"},
      {"health", "status"},
      {"compile hardmax --shape 3,3 --axes 1", "key"},
      {"bench --operator hardmax --shape 9,9 --axes 1 --duration 100ms", "latency_s"}};
  for (const auto& [arguments, field] : cases) {
    const Finished done = Run(absl::StrCat(arguments, " --json"));
    EXPECT_EQ(done.exit_code, 0) << arguments << done.err;
    EXPECT_EQ(ParseJson(done.out).fields().count(field), 1u) << done.out;
  }
}

TEST_F(CommandTest, SummarizesLargeResultsAsNumPyDoes) {
  std::vector<float> elements(1001, 0.25f);
  elements[500] = -7;
  elements[700] = 12;
  Save("x.npy", {1001, 1}, elements);
  const std::string command = "run reduce --function sum --input x.npy --axes 1";
  EXPECT_EQ(Run(command).out, "(1001,) float32 min -7.0 max 12.0\n");
  elements[0] = NAN;
  Save("x.npy", {1001, 1}, elements);
  EXPECT_EQ(Run(command).out, "(1001,) float32 min nan max nan\n");
}

TEST_F(CommandTest, MeasuresByBothRpcs) {
  for (const char* rpc : {"execute", "execute_stream"}) {
    const Finished done = Run(absl::StrCat(
        "bench --operator reduce --function sum --dtype float16 --shape 30,30 --axes 1 "
        "--concurrency 4 --duration 200ms --json --rpc=",
        rpc));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto json = ParseJson(done.out);
    EXPECT_GT(json.fields().at("calls").number_value(), 4);
    const auto& latency = json.fields().at("latency_s").struct_value().fields();
    EXPECT_LE(latency.at("p50").number_value(), latency.at("p99").number_value());
    EXPECT_LE(latency.at("p99").number_value(), latency.at("max").number_value());
  }
}

TEST_F(CommandTest, PrintsWhatWasMeasuredWhenInterrupted) {
  const Finished done = Shell(
      "$OPMILL bench --operator hardmax --shape 9,9 --axes 1 --duration 10m & "
      "sleep 3; kill -INT $!; wait $!");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("latency     p50"));
}

TEST_F(CommandTest, EndsABenchThatIsRefused) {
  const Finished done =
      Run("bench --operator top_k --k 9 --axis 0 --shape 3 --concurrency 2 --duration 10m");
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("opmill: --k: k (9) is larger"));
}

TEST_F(CommandTest, ReportsThatItsOutputCannotBeWritten) {
  const Finished done = Shell("$OPMILL health >/dev/full");
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace opmill
