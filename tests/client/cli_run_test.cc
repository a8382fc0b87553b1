// `opmill run` with pipes, many files, casts and archives, against a real server.
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

class RunTest : public ShellTest {};

TEST_F(RunTest, ReadsAndWritesPipes) {
  Save("x.npy", {2, 3}, {1, 2, 3, 30, 20, 10});
  const Finished piped = Shell(
      "cat x.npy | $OPMILL run reduce --function sum --input - --axes 1 --output - | "
      "$OPMILL run reduce --function max - --axes 0");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, "60.0\n");
  // A pipe contains exactly the bytes of a file.
  EXPECT_EQ(Run("run top_k x.npy --axis 1 --k 2 --output v.npy --indices i.npy").exit_code, 0);
  EXPECT_EQ(Run("run top_k x.npy --axis 1 --k 2 --output -").out, Read("v.npy"));
  EXPECT_EQ(Run("run top_k x.npy --axis 1 --k 2 --output w.npy --indices -").out, Read("i.npy"));
  EXPECT_EQ(Read("w.npy"), Read("v.npy"));
}

TEST_F(RunTest, PipesMoreThanAPipeHolds) {
  std::vector<float> elements(3'000'000, 1);
  elements[2'345'678] = 5;
  Save("x.npy", {1, 3'000'000}, elements);
  const Finished piped = Shell(
      "cat x.npy | $OPMILL run hardmax - --axes 1 --output - | $OPMILL run argmax - --axes 1");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, "[2345678]\n");
}

TEST_F(RunTest, ExplainsErrorsOfStandardInput) {
  Save("x.npy", {3}, {1, 2, 3});
  const std::pair<const char*, const char*> cases[] = {
      {": |", "standard input: It is empty; a .npy file is expected."},
      {"echo hello |", "standard input: The file is not a .npy file"},
      {"head -c 70 x.npy |", "standard input: The .npy file is truncated: it needs 128 bytes"},
      {"head -c 130 x.npy |", "standard input: The .npy file is truncated: it needs 140 bytes"},
      {"printf \"PK\\003\\004............\" |", "standard input: It is a .npz archive"}};
  for (const auto& [source, sentence] : cases) {
    const Finished done = Shell(absl::StrCat(source, " $OPMILL run argmax - --axes 0"));
    EXPECT_EQ(done.exit_code, 1) << source;
    EXPECT_THAT(done.err, HasSubstr(sentence)) << source;
  }
}

TEST_F(RunTest, ComputesEachFile) {
  std::vector<std::string> names;
  std::string expected;
  for (int i = 0; i < 40; ++i) {  // more than run at a time
    names.push_back(absl::StrCat("f", i, ".npy"));
    Save(names.back(), {2}, {static_cast<float>(i), 1});
    absl::StrAppend(&expected, names.back(), ":\n", i + 1, ".0\n");
  }
  const std::string files = absl::StrJoin(names, " ");
  const Finished done = Run(absl::StrCat("run reduce ", files, " --function sum --axes 0"));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, expected);

  const Finished written =
      Run(absl::StrCat("run sum ", files, " --axes 0 --keepdims --output out/"));
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("f39.npy:\n(1,) float32 -> out/f39.npy\n"));
  EXPECT_EQ(Run("run sum out/f39.npy").out, "40.0\n");
  EXPECT_EQ(Run("run sum f1.npy f2.npy --keepdims --output s-{}.npy").exit_code, 0);
  EXPECT_EQ(Run("run sum s-f2.npy").out, "3.0\n");
}

TEST_F(RunTest, ContinuesAfterAFailedFile) {
  Save("a.npy", {2, 2}, {1, 2, 3, 4});
  Save("b.npy", {2}, {1, 2});
  Save("c.npy", {1, 2}, {5, 6});
  const Finished refused = Run("run top_k a.npy none.npy c.npy --axis 0 --k 2");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "a.npy:\nvalues:\n[[3. 4.]\n [1. 2.]]\nindices:\n[[1 1]\n [0 0]]\n");
  EXPECT_THAT(
      refused.err,
      AllOf(HasSubstr("opmill: none.npy cannot be opened: No such file or directory.\n"),
            HasSubstr("opmill: c.npy: --k: k (2) is larger than the size (1) of axis (0)")));
  const Finished in_one = Shell("$OPMILL run argmax a.npy none.npy c.npy --axis 0 2>&1");
  EXPECT_LT(in_one.out.find("a.npy:\n"), in_one.out.find("opmill: none.npy cannot"));
  EXPECT_LT(in_one.out.find("opmill: none.npy cannot"), in_one.out.find("c.npy:\n"));
  EXPECT_NE(in_one.out.find("c.npy:\n"), std::string::npos);
  // The highest exit code.
  const Finished axis = Run("run argmax a.npy b.npy none.npy c.npy --axes 1 --json");
  EXPECT_EQ(axis.exit_code, 2);
  EXPECT_THAT(axis.err, HasSubstr("--axes: axis 1 is out of range for b.npy, which has 1 dim"));
  const std::vector<std::string> lines = absl::StrSplit(axis.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u) << axis.out;
  EXPECT_EQ(ParseJson(lines[0]).fields().at("input").string_value(), "a.npy");
  EXPECT_EQ(ParseJson(lines[0]).fields().count("outputs"), 1u);
  EXPECT_THAT(ParseJson(lines[1]).fields().at("error").string_value(), HasSubstr("out of range"));
  EXPECT_EQ(ParseJson(lines[3]).fields().at("input").string_value(), "c.npy");
}

TEST_F(RunTest, DropsReducedAxes) {
  Save("x.npy", {2, 3}, {1, 2, 3, 30, 20, 10});
  EXPECT_EQ(Run("run reduce --function sum x.npy --axis 1 --keepdims=false").out, "[ 6. 60.]\n");
  EXPECT_EQ(Run("run reduce --function sum x.npy --axis 1").out, "[ 6. 60.]\n");
  EXPECT_EQ(Run("run reduce --function sum x.npy --axis 1 --keepdims").out, "[[ 6.]\n [60.]]\n");
  EXPECT_EQ(Run("run sum x.npy --axis 1").out, "[ 6. 60.]\n");
  EXPECT_EQ(Run("run mean x.npy").out, "11.0\n");
  EXPECT_EQ(Run("run mean x.npy --keepdims").out, "[[11.]]\n");
  EXPECT_EQ(Run("run argmax x.npy --axis 0 --output y.npy").out, "(3,) uint32 -> y.npy\n");
  EXPECT_EQ(Read("y.npy").substr(0, 128),
            MakeNpyHeader(v1::DATA_TYPE_UINT32, std::vector<uint32_t>{3}));
  EXPECT_EQ(
      Run("run reduce --function max x.npy --output -").out,
      absl::StrCat(MakeNpyHeader(v1::DATA_TYPE_FLOAT32, {}), absl::string_view("\0\0\xF0\x41", 4)));
  const auto json = ParseJson(Run("run argmin x.npy --axes 1 --json").out).fields().at("outputs");
  EXPECT_EQ(
      json.list_value().values(0).struct_value().fields().at("sizes").list_value().values_size(),
      1);
}

TEST_F(RunTest, CastsUnsupportedTypes) {
  const std::vector<double> elements = {0.5, 2, -1e300};
  std::string file = MakeNpyHeader(v1::DATA_TYPE_INT64, std::vector<uint32_t>{3});
  file.replace(file.find("<i8"), 3, "<f8");
  file.append(reinterpret_cast<const char*>(elements.data()), 2 * sizeof(double));
  std::ofstream(Path("two.npy"), std::ios::binary) << file.replace(file.find("(3,)"), 4, "(2,)");
  EXPECT_EQ(Run("run reduce --function sum two.npy --axes 0 --cast float32").out, "2.5\n");
  EXPECT_EQ(Run("run reduce --function sum two.npy --axes 0").err,
            "opmill: two.npy: The array's type is float64, which no operator accepts; convert it "
            "with --cast float32.\n");
  EXPECT_THAT(Run("run argmax two.npy --axes 0 --cast int32").err,
              HasSubstr("two.npy: The array's type is float64, but floats are not cast to int"));
  std::ofstream(Path("large.npy"), std::ios::binary)
      << file.replace(128, 8, std::string_view(reinterpret_cast<const char*>(&elements[2]), 8));
  const Finished large = Run("run argmax large.npy --axes 0 --cast float32");
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_EQ(large.err,
            "opmill: large.npy: The array's value -1e+300 at [0] does not fit into float32.\n");
  EXPECT_EQ(Shell("cat two.npy | $OPMILL run argmax - --axes 0 --cast float16").out, "1\n");
}

TEST_F(RunTest, ComputesEachArrayOfAnArchive) {
  Save("a.npy", {2}, {1, 2});
  Save("b.npy", {2}, {30, 40});
  EXPECT_EQ(Run("run top_k a.npy b.npy --axis 0 --k 1 --output v.npz --indices i.npz").exit_code,
            0);
  EXPECT_EQ(Run("run reduce --function sum v.npz --axes 0").out, "v.npz:a:\n2.0\nv.npz:b:\n40.0\n");
  EXPECT_EQ(Run("run reduce --function sum i.npz:b --axes 0").out, "1\n");
  EXPECT_EQ(Run("run sum v.npz --keepdims --output w-{}.npy").exit_code, 0);
  EXPECT_EQ(Run("run reduce --function sum w-b.npy --axes 0").out, "40.0\n");
  EXPECT_EQ(Run("run argmax v.npz:c --axes 0").err,
            "opmill: v.npz holds no array c; it holds a, b.\n");
  // Failed arrays are omitted from the archive; the others are in it.
  std::ofstream(Path("text.npy")) << "hello";
  EXPECT_EQ(Run("run argmax a.npy text.npy --keepdims --output y.npz").exit_code, 1);
  EXPECT_EQ(Run("run reduce --function sum y.npz --axes 0").out, "1\n");
  const std::string archive = Read("v.npz");
  std::ofstream(Path("cut.npz"), std::ios::binary) << archive.substr(0, archive.size() - 9);
  EXPECT_THAT(Run("run argmax cut.npz --axes 0").err,
              HasSubstr("opmill: cut.npz: The file is not"));
}

TEST_F(RunTest, TellsOfAnArchiveThatCannotBeCreated) {
  Save("x.npy", {3}, {1, 2, 3});
  const Finished done = Run("run argmax x.npy --axes 0 --output /proc/y.npz");
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("/proc/y.npz cannot be written"));
}

TEST_F(RunTest, RefusesBadCommandLines) {
  Save("x.npy", {3}, {1, 2, 3});
  const std::pair<const char*, const char*> cases[] = {
      {"run argmin --axes 0 --input x.npy --input x.npy", "Pass several files as positional arg"},
      {"run argmin --axes 0 x.npy --input x.npy", "cannot be combined with positional files"},
      {"run argmin --axes 0 - -", "Standard input (-) is given twice."},
      {"run argmin --axes 0 x.npy x.npy --output y.npy", "y.npy is one file, but there are 2"},
      {"run argmin --axes 0 x.npy x.npy --output -", "Standard output can hold one result"},
      {"run argmin --axes 0 x.npy --output - --json", "Standard output contains the result (-)"},
      {"run top_k --axis 0 --k 1 x.npy --output - --indices -", "It is the same as --output"},
      {"run top_k --axis 0 --k 1 x.npy --keepdims=false",
       "--keepdims: top_k does not take this flag."},
      {"run argmin --axes 0 x.npy --cast float64", "no element type \"float64\""},
      {"run argmin --axes 0 --axis 0 x.npy", "--axis: It is an alias of --axes"},
      {"run argmin --axis 0,0 x.npy", "--axis: axis 0 is given twice."},
  };
  for (const auto& [arguments, sentence] : cases) {
    const Finished done = Run(arguments);
    EXPECT_EQ(done.exit_code, 2) << arguments;
    EXPECT_THAT(done.err, HasSubstr(sentence)) << arguments;
    EXPECT_EQ(done.out, "") << arguments;
  }
}

}  // namespace
}  // namespace opmill
