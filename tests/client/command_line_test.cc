#include "client/cli/command_line.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/command_line_flags.h"
#include "client/cli/command_line_operators.h"
#include "client/cli/operator_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/nearest.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

Verb RunLike() {
  return {.name = "run",
          .arguments = "OPERATOR [FILE...]",
          .summary = "computes",
          .details = "More about it.\n",
          .flags = OperatorFlags(
              {{"input", "FILE", "what to read", {}, true}, {"json", "", "print JSON"}}),
          .run = nullptr};
}

absl::StatusOr<CommandLine> Parse(const Verb& verb, const std::vector<std::string>& words) {
  return CommandLine::Parse(verb, words);
}

std::string RefusalOf(const std::vector<std::string>& words) {
  const Verb verb = RunLike();
  return std::string(Parse(verb, words).status().message());
}

TEST(CommandLine, AcceptsValuesAfterASpaceOrAnEqualsSign) {
  const Verb verb = RunLike();
  const auto line =
      Parse(verb, {"--input", "a=b.npy", "argmin", "--axes=0,1", "--axis", "-1", "--json"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->argument(), "argmin");
  EXPECT_EQ(line->Get("input"), "a=b.npy");
  EXPECT_EQ(line->Get("axes"), "0,1");
  EXPECT_EQ(line->Get("axis"), "-1");
  EXPECT_TRUE(line->Has("json"));
  EXPECT_FALSE(line->Has("k"));
  EXPECT_EQ(line->Get("k"), std::nullopt);
}

TEST(CommandLine, TakesAsManyArgumentsAsTheVerbDoes) {
  Verb verb = RunLike();
  const auto line = Parse(verb, {"argmin", "a.npy", "--axes", "0", "-", "b.npy"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->arguments(), ElementsAre("argmin", "a.npy", "-", "b.npy"));
  verb.arguments = "OPERATOR";
  EXPECT_EQ(Parse(verb, {"argmin", "argmax"}).status().message(),
            "opmill run takes no argument \"argmax\".");
}

TEST(CommandLine, TakesSwitchesAsTrueAndFalse) {
  const Verb verb = RunLike();
  for (const char* const word : {"--json", "--json=true"}) {
    const auto on = Parse(verb, {word});
    ASSERT_TRUE(on.ok()) << on.status();
    EXPECT_TRUE(on->Has("json"));
    EXPECT_EQ(on->Get("json"), "true");
  }
  for (const char* const word : {"--json=false", "--nojson"}) {
    const auto off = Parse(verb, {word});
    ASSERT_TRUE(off.ok()) << off.status();
    EXPECT_FALSE(off->Has("json"));
    EXPECT_EQ(off->Get("json"), "false");
  }
  // The name of another flag is a value here.
  EXPECT_TRUE(Parse(verb, {"--input=false"})->Has("input"));
}

TEST(CommandLine, KeepsTheOrderOfAFlagThatRepeats) {
  const Verb verb = RunLike();
  const auto line = Parse(verb, {"--input", "b.npy", "--axes=0", "--input=a.npy", "--input", "-"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->GetAll("input"), ElementsAre("b.npy", "a.npy", "-"));
  EXPECT_EQ(line->Get("input"), "b.npy");
  EXPECT_THAT(line->GetAll("k"), ElementsAre());
}

TEST(CommandLine, RefusesWithASentence) {
  EXPECT_EQ(RefusalOf({"--nojson=true"}), "opmill run has no flag --nojson.");
  EXPECT_EQ(RefusalOf({"--noinput"}), "opmill run has no flag --noinput.");
  EXPECT_EQ(RefusalOf({"--inptu", "x"}), "opmill run has no flag --inptu. Did you mean --input?");
  EXPECT_EQ(RefusalOf({"--colour=red"}), "opmill run has no flag --colour.");
  EXPECT_EQ(RefusalOf({"--input"}), "--input needs a value: --input FILE.");
  EXPECT_EQ(RefusalOf({"--json=yes"}), "--json: \"yes\" is neither true nor false.");
  EXPECT_EQ(RefusalOf({"--json", "--json=false"}), "--json is given twice.");
  EXPECT_EQ(RefusalOf({"--axes=0", "--axes=1"}), "--axes is given twice.");
  EXPECT_EQ(RefusalOf({"-colour"}), "opmill run has no flag -colour.");
  EXPECT_EQ(RefusalOf({"-axes", "0"}), "opmill run has no flag -axes. Did you mean --axes?");
}

TEST(Nearest, FindsWordsWithOneOrTwoTypos) {
  const std::vector<std::string> verbs = {"run", "stats", "health", "compile", "bench"};
  EXPECT_EQ(Nearest("rnu", verbs), "run");
  EXPECT_EQ(Nearest("stat", verbs), "stats");
  EXPECT_EQ(Nearest("complie", verbs), "compile");
  EXPECT_EQ(Nearest("heatlh", verbs), "health");
  EXPECT_EQ(Nearest("serve", verbs), "");
  EXPECT_EQ(Nearest("", verbs), "");
  EXPECT_EQ(Nearest("max_exectuions_per_steram", {"max_executions", "max_executions_per_stream"}),
            "max_executions_per_stream");
}

TEST(Nearest, ShortWordsHaveTheSameFirstLetter) {
  EXPECT_EQ(Nearest("cup", {"auto", "cpu"}), "cpu");
  EXPECT_EQ(Nearest("gpu", {"auto", "cpu"}), "");
}

TEST(Nearest, DoesNotCompareLongWords) {
  const std::string longest(64, 'x');
  EXPECT_EQ(Nearest(longest.substr(1), {longest}), longest);
  EXPECT_EQ(Nearest(longest + "x", {longest}), "");
  EXPECT_EQ(Nearest(longest, {longest + "x"}), "");
}

TEST(HelpPage, NamesEveryFlagOfAVerb) {
  const Verb verb = RunLike();
  const std::string page = HelpPage(verb);
  for (const Flag& flag : verb.flags) EXPECT_THAT(page, HasSubstr("  --" + flag.name));
  EXPECT_THAT(page, HasSubstr("More about it."));
}

// The result of ReadOperator for a command line, or the error.
absl::StatusOr<v1::OperatorDesc> Read(const std::string& op, const std::vector<uint32_t>& sizes,
                                      const std::vector<std::string>& words) {
  const Verb verb = RunLike();
  const auto line = Parse(verb, words);
  if (!line.ok()) return line.status();
  const TensorDesc input = {.data_type = DataType::kFloat32, .sizes = sizes};
  FlagReader flags(*line);
  v1::OperatorDesc desc = ReadOperator(op, input, flags);
  if (!flags.status().ok()) return flags.status();
  return desc;
}

std::string RefusalOf(const std::string& op, const std::vector<std::string>& words) {
  return std::string(Read(op, {3, 4}, words).status().message());
}

TEST(ReadOperator, CountsNegativeAxesFromTheEnd) {
  const auto desc = Read("argmin", {3, 4, 5}, {"--axes", "-1,0"});
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_THAT(desc->arg_min().axes(), ElementsAre(2, 0));
  EXPECT_EQ(desc->arg_min().axis_direction(), v1::AXIS_DIRECTION_INCREASING);
  EXPECT_FALSE(desc->arg_min().has_output());
}

TEST(ReadOperator, SetsTheTypeOfIndices) {
  const auto argmax = Read("argmax", {3, 4, 5}, {"--axes=1", "--index_type=int64"});
  ASSERT_TRUE(argmax.ok()) << argmax.status();
  EXPECT_EQ(argmax->arg_max().output().data_type(), v1::DATA_TYPE_INT64);
  EXPECT_THAT(argmax->arg_max().output().sizes(), ElementsAre(3, 1, 5));

  const auto top_k = Read("top_k", {3, 4},
                          {"--axis=-1", "--k=2", "--index_type=uint64", "--direction=increasing"});
  ASSERT_TRUE(top_k.ok()) << top_k.status();
  EXPECT_THAT(top_k->top_k().output_indices().sizes(), ElementsAre(3, 2));
  EXPECT_FALSE(top_k->top_k().has_output_values());
  EXPECT_EQ(top_k->top_k().axis_direction(), v1::AXIS_DIRECTION_INCREASING);

  const auto reduce =
      Read("reduce", {3, 4}, {"--function=argmin", "--axes=0", "--index_type=int32"});
  ASSERT_TRUE(reduce.ok()) << reduce.status();
  EXPECT_THAT(reduce->reduce().output().sizes(), ElementsAre(1, 4));
}

TEST(ReadOperator, TakesTheLargestByDefaultInTopK) {
  const auto desc = Read("top_k", {9}, {"--axis=0", "--k=2"});
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(desc->top_k().axis_direction(), v1::AXIS_DIRECTION_DECREASING);
}

TEST(ReadOperator, TakesAxisAndAxesWithEveryOperator) {
  for (const char* const flag : {"--axis=1", "--axes=1"}) {
    EXPECT_THAT(Read("argmax", {3, 4}, {flag})->arg_max().axes(), ElementsAre(1));
    EXPECT_THAT(Read("hardmax", {3, 4}, {flag})->hardmax().axes(), ElementsAre(1));
    EXPECT_EQ(Read("top_k", {3, 4}, {flag, "--k=2"})->top_k().axis(), 1u);
  }
  EXPECT_THAT(Read("argmax", {3, 4}, {"--axis=1,0"})->arg_max().axes(), ElementsAre(1, 0));
}

// As in NumPy, and in the Python package.
TEST(ReadOperator, TakesAllAxesOrTheLastByDefault) {
  EXPECT_THAT(Read("argmax", {3, 4, 5}, {})->arg_max().axes(), ElementsAre(0, 1, 2));
  EXPECT_THAT(Read("reduce", {3, 4}, {"--function=max"})->reduce().axes(), ElementsAre(0, 1));
  EXPECT_THAT(Read("hardmax", {3, 4, 5}, {})->hardmax().axes(), ElementsAre(2));
  EXPECT_EQ(Read("top_k", {3, 4}, {"--k=2"})->top_k().axis(), 1u);
  EXPECT_EQ(Read("cumsum", {3, 4}, {})->cumulative_summation().axis(), 1u);
}

TEST(ReadOperator, TakesFunctionsOfReduceAsOperators) {
  const auto sum = Read("sum", {3, 4}, {"--axis=1"});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->reduce().function(), v1::REDUCE_FUNCTION_SUM);
  EXPECT_THAT(sum->reduce().axes(), ElementsAre(1));
  EXPECT_EQ(Read("prod", {3}, {})->reduce().function(), v1::REDUCE_FUNCTION_MULTIPLY);
  // The operator, which has --direction, not the function.
  EXPECT_TRUE(Read("argmax", {3}, {"--direction=decreasing"})->has_arg_max());
  EXPECT_TRUE(Read("add", {3}, {})->has_element_wise_add());
}

TEST(ReadOperator, TakesOtherLibrariesNamesOfFunctions) {
  const std::pair<const char*, v1::ReduceFunction> cases[] = {
      {"mean", v1::REDUCE_FUNCTION_AVERAGE},
      {"prod", v1::REDUCE_FUNCTION_MULTIPLY},
      {"lse", v1::REDUCE_FUNCTION_LOG_SUM_EXP},
      {"logsumexp", v1::REDUCE_FUNCTION_LOG_SUM_EXP}};
  for (const auto& [name, function] : cases) {
    const auto desc = Read("reduce", {3}, {"--axes=0", std::string("--function=") + name});
    ASSERT_TRUE(desc.ok()) << desc.status();
    EXPECT_EQ(desc->reduce().function(), function);
  }
}

TEST(OperatorChoice, NamesTheUsersAxesInErrors) {
  const auto refusal = [](const std::string& flag, const std::string& axes, size_t rank) {
    OperatorChoice choice{.schema = FindOperatorName("argmax")->schema,
                          .axes_flag = flag,
                          .attributes = {std::vector<uint32_t>(), 0u}};
    for (const absl::string_view axis : absl::StrSplit(axes, ',')) {
      int64_t value = 0;
      EXPECT_TRUE(absl::SimpleAtoi(axis, &value));
      choice.axes.push_back(value);
    }
    const TensorDesc input = {.sizes = std::vector<uint32_t>(rank, 2)};
    return std::string(choice.For({input}, "x.npy").status().message());
  };
  EXPECT_EQ(refusal("axes", "0,3", 2),
            "--axes: axis 3 is out of range for x.npy, which has 2 dimensions (axes -2 to 1).");
  EXPECT_EQ(refusal("axis", "-2", 1),
            "--axis: axis -2 is out of range for x.npy, which has 1 dimension (axes -1 to 0).");
  EXPECT_EQ(refusal("axes", "9223372036854775807", 2),
            "--axes: axis 9223372036854775807 is out of range for x.npy, which has 2 dimensions "
            "(axes -2 to 1).");
  EXPECT_EQ(refusal("axes", "1,0,1", 2), "--axes: axis 1 is given twice.");
  EXPECT_EQ(refusal("axes", "1,-1", 2), "--axes: axis -1 is the same as axis 1 of x.npy.");
  EXPECT_EQ(refusal("axes", "1,0", 2), "");
}

TEST(ReadOperator, RefusesWithASentence) {
  EXPECT_EQ(RefusalOf("argmim", {}),
            "There is no operator \"argmim\"; `opmill help run` lists them. Did you mean argmin?");
  EXPECT_THAT(RefusalOf("", {}), HasSubstr("An operator is required"));
  EXPECT_THAT(RefusalOf("smu", {}), EndsWith(" Did you mean sum?"));
  EXPECT_THAT(RefusalOf("cumsmu", {}), EndsWith(" Did you mean cumsum?"));
  EXPECT_EQ(RefusalOf("argmin", {"--axes="}), "--axes: A value is required.");
  EXPECT_EQ(RefusalOf("sum", {"--function=max"}), "--function: sum does not take this flag.");
  EXPECT_THAT(RefusalOf("reduce", {"--function=summ"}), EndsWith(" Did you mean sum?"));
  EXPECT_THAT(RefusalOf("reduce", {"--function=maen"}), EndsWith(" Did you mean mean?"));
  EXPECT_EQ(RefusalOf("argmin", {"--axes=-3"}),
            "--axes: axis -3 is out of range for --shape, which has 2 dimensions (axes -2 to 1).");
  EXPECT_EQ(RefusalOf("argmin", {"--axes=0,x"}),
            "--axes: \"x\" is not an integer; separate several with commas: 0,1.");
  EXPECT_EQ(RefusalOf("reduce", {"--axes=0"}), "--function: A value is required.");
  EXPECT_THAT(RefusalOf("reduce", {"--axes=0", "--function=median"}),
              HasSubstr("no reduce function \"median\"; the choices are argmax, argmin, average"));
  EXPECT_EQ(RefusalOf("hardmax", {"--axes=0", "--k=3"}), "--k: hardmax does not take this flag.");
  EXPECT_EQ(RefusalOf("top_k", {"--axes=0,1", "--k=3"}),
            "--axes: top_k takes exactly one axis; 2 are given.");
  EXPECT_EQ(RefusalOf("argmin", {"--axes=0", "--axis=0"}),
            "--axis: It is an alias of --axes; give only one of them.");
  EXPECT_EQ(RefusalOf("top_k", {"--axis=0"}), "--k: A value is required.");
  EXPECT_EQ(RefusalOf("top_k", {"--axis=0", "--k=-1"}),
            "--k: \"-1\" is not a number from 0 to 4294967295.");
  EXPECT_EQ(
      RefusalOf("argmin", {"--axes=0", "--direction=up"}),
      "--direction: There is no direction \"up\"; the choices are increasing and decreasing.");
  EXPECT_THAT(RefusalOf("argmin", {"--axes=0", "--index_type=float64"}),
              HasSubstr("no element type \"float64\""));
  EXPECT_EQ(RefusalOf("reduce", {"--axes=0", "--function=sum", "--index_type=int32"}),
            "--index_type: Only the functions argmax and argmin return indices.");
}

TEST(FlagReader, ReadsTimes) {
  Verb verb = RunLike();
  verb.flags = {{"deadline", "TIME", ""}};
  const auto good = Parse(verb, {"--deadline=250ms"});
  FlagReader flags(*good);
  EXPECT_EQ(flags.Time("deadline", absl::ZeroDuration()), absl::Milliseconds(250));
  const std::pair<const char*, const char*> refused[] = {
      {"5", "\"5\" is not a duration; write it as 5s, 250ms or 2m. Did you mean 5s?"},
      {"soon", "\"soon\" is not a duration; write it as 5s, 250ms or 2m."},
      {"", "\"\" is not a duration; write it as 5s, 250ms or 2m."},
      {"-1s", "-1s is not above 0."},
      {"0s", "0s is not above 0."}};
  for (const auto& [text, sentence] : refused) {
    const auto bad = Parse(verb, {std::string("--deadline=") + text});
    FlagReader reader(*bad);
    reader.Time("deadline", absl::ZeroDuration());
    EXPECT_EQ(reader.status().message(), absl::StrCat("--deadline: ", sentence));
  }
}

}  // namespace
}  // namespace opmill
