#include "client/cli/output_plan.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Operands> Inputs(const std::vector<std::string>& stems) {
  std::vector<Operands> inputs;
  for (const std::string& stem : stems) inputs.push_back({{.name = stem + ".npy", .stem = stem}});
  return inputs;
}

// The names of the targets, or the error.
std::vector<std::string> Plan(const std::vector<std::string>& stems, const std::string& output) {
  const std::vector<Operands> inputs = Inputs(stems);
  const auto targets = OutputPlan(inputs).Add("output", output);
  if (!targets.ok()) return {std::string(targets.status().message())};
  std::vector<std::string> names;
  for (const OutputTarget& target : *targets) names.push_back(target.Name());
  return names;
}

TEST(OutputPlan, TakesAFileForOneInput) {
  EXPECT_THAT(Plan({"a"}, "y.npy"), ElementsAre("y.npy"));
  EXPECT_THAT(Plan({"a"}, "-"), ElementsAre("standard output"));
  EXPECT_THAT(Plan({"a"}, "y.npz"), ElementsAre("y.npz:a"));
}

TEST(OutputPlan, AcceptsDirectoriesPatternsAndArchivesForManyInputs) {
  const ScratchDirectory scratch;
  EXPECT_THAT(Plan({"a", "b"}, "no/such/folder/"),
              ElementsAre("no/such/folder/a.npy", "no/such/folder/b.npy"));
  EXPECT_THAT(Plan({"a", "b"}, scratch.utf8()),
              ElementsAre(scratch.utf8() + "/a.npy", scratch.utf8() + "/b.npy"));
  EXPECT_THAT(Plan({"a", "b"}, "{}/max-{}.npy"), ElementsAre("a/max-a.npy", "b/max-b.npy"));
  EXPECT_THAT(Plan({"a", "b"}, "y.npz"), ElementsAre("y.npz:a", "y.npz:b"));
  EXPECT_THAT(Plan({"a", "b"}, "{}.npz"), ElementsAre("a.npz:a", "b.npz:b"));
}

TEST(OutputPlan, RefusesWithASentence) {
  EXPECT_THAT(Plan({"a", "b"}, "y.npy"),
              ElementsAre("--output: y.npy is one file, but there are 2 results; name a directory "
                          "(out/), a .npz archive, or a file with {} for the name of each "
                          "(out-{}.npy)."));
  EXPECT_THAT(Plan({"a", "b"}, "-"),
              ElementsAre("--output: Standard output can hold one result, but there are 2; "
                          "name a directory (out/) or a .npz archive."));
  EXPECT_THAT(Plan({"a", "b", "a"}, "out/"),
              ElementsAre("--output: The results of a.npy and a.npy would both be out/a.npy."));
  EXPECT_THAT(Plan({"a"}, ""), ElementsAre("--output: It is empty; it must name a file."));
}

// Names in archives are arbitrary, and must not lead out of the directory.
TEST(OutputPlan, DoesNotUseAPathAsAName) {
  for (const char* const stem : {"../x", "/etc/x", "..", ".x", "a\\b", "C:x", ""}) {
    EXPECT_THAT(Plan({"a", stem}, "out/"), ElementsAre(HasSubstr("cannot be part of a file name")));
    EXPECT_THAT(Plan({"a", stem}, "{}.npy"),
                ElementsAre(HasSubstr("cannot be part of a file name")));
  }
  EXPECT_THAT(Plan({"../x"}, "y.npz"), ElementsAre("y.npz:../x"));
}

TEST(OutputPlan, RefusesOneTargetForTwoFlags) {
  for (const char* const value : {"y.npy", "y.npz", "-", "out/"}) {
    const std::vector<Operands> inputs = Inputs({"a"});
    OutputPlan plan(inputs);
    EXPECT_TRUE(plan.Add("output", value).ok());
    EXPECT_THAT(std::string(plan.Add("indices", value).status().message()),
                HasSubstr("--indices: It is the same as --output: "));
  }
}

TEST(OutputPlan, MakesFoldersAndChecksFilesAhead) {
  const ScratchDirectory scratch;
  const std::vector<Operands> inputs = Inputs({"a"});
  OutputPlan good(inputs);
  ASSERT_TRUE(good.Add("output", scratch.utf8() + "/new/").ok());
  EXPECT_TRUE(good.Prepare().ok());
  EXPECT_TRUE(std::filesystem::is_directory(scratch.path() / "new"));
  OutputPlan bad(inputs);
  ASSERT_TRUE(bad.Add("output", scratch.utf8() + "/none/{}.npy").ok());
  EXPECT_THAT(std::string(bad.Prepare().message()), HasSubstr("the folder does not exist"));
}

TEST(OutputPlan, SkipsInputsThatCannotBeRead) {
  std::vector<Operands> inputs = Inputs({"a", "b"});
  inputs[0].front().status = absl::NotFoundError("");
  const auto targets = OutputPlan(inputs).Add("output", "{}.npy");
  ASSERT_TRUE(targets.ok()) << targets.status();
  EXPECT_EQ(targets->at(0).kind, OutputTarget::Kind::kScreen);
  EXPECT_EQ(targets->at(1).Name(), "b.npy");
}

}  // namespace
}  // namespace opmill
