// The command line's handling of operator schemas.
#include "client/cli/operator_flags.h"

#include <set>
#include <string>
#include <vector>

#include "client/encode_operator.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr absl::string_view kModes[] = {"NEAREST", "LINEAR_BLEND"};
constexpr AttributeSchema kAttributes[] = {
    {.name = "depth"},
    {.name = "exclusive", .kind = AttributeKind::kFlag},
    {.name = "mode", .kind = AttributeKind::kChoice, .choices = kModes},
    {.name = "axis_direction",
     .kind = AttributeKind::kChoice,
     .choices = kAxisDirections,
     .default_text = "INCREASING"}};
// A fictitious operator.
constexpr OperatorSchema kSchema = {.name = "scan", .attributes = kAttributes};

Verb Scan() {
  return {.name = "run",
          .arguments = "OPERATOR",
          .flags = OperatorFlags({{"depth", "N", ""}, {"exclusive", "", ""}, {"mode", "NAME", ""}}),
          .run = nullptr};
}

// The values of its attributes, or the error.
absl::StatusOr<std::vector<AttributeValue>> ReadChoice(const std::vector<std::string>& words) {
  const Verb verb = Scan();
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(verb, words);
  if (!line.ok()) return line.status();
  FlagReader flags(*line);
  const OperatorChoice choice = ReadOperatorChoice({"scan", &kSchema, std::nullopt}, flags);
  if (!flags.status().ok()) return flags.status();
  return choice.attributes;
}

std::string ChoiceRefusal(const std::vector<std::string>& words) {
  return std::string(ReadChoice(words).status().message());
}

TEST(ReadOperatorChoice, ReadsNumbersFlagsAndChoices) {
  const auto values = [](uint32_t depth, uint32_t exclusive, uint32_t mode,
                         uint32_t direction = 0) {
    return std::vector<AttributeValue>{depth, exclusive, mode, direction};
  };
  EXPECT_EQ(*ReadChoice({"--depth=3", "--mode=nearest"}), values(3, 0, 0));
  EXPECT_EQ(*ReadChoice({"--depth", "0", "--exclusive", "--mode", "Linear_Blend"}),
            values(0, 1, 1));
  EXPECT_EQ(*ReadChoice({"--depth=3", "--exclusive=false", "--mode=nearest"}), values(3, 0, 0));
  EXPECT_EQ(*ReadChoice({"--depth=3", "--noexclusive", "--mode=nearest"}), values(3, 0, 0));
  EXPECT_EQ(*ReadChoice({"--depth=3", "--mode=nearest", "--direction=decreasing"}),
            values(3, 0, 0, 1));
}

TEST(ReadOperatorChoice, RefusesWithASentence) {
  EXPECT_EQ(ChoiceRefusal({"--mode=nearest"}), "--depth: A value is required.");
  EXPECT_EQ(ChoiceRefusal({"--depth=3"}), "--mode: A value is required.");
  EXPECT_EQ(ChoiceRefusal({"--depth=3", "--mode=cubic"}),
            "--mode: There is no mode \"cubic\"; the choices are nearest and linear_blend.");
  EXPECT_EQ(ChoiceRefusal({"--depth=3", "--mode=nearest", "--axes=0"}),
            "--axes: scan does not take this flag.");
  EXPECT_EQ(ChoiceRefusal({"--depth=3", "--mode=nearest", "--axis=0"}),
            "--axis: scan does not take this flag.");
  EXPECT_EQ(ChoiceRefusal({"--depth=3", "--mode=nearest", "--index_type=int32"}),
            "--index_type: scan does not take this flag.");
  EXPECT_EQ(ChoiceRefusal({"--exclusive", "--noexclusive"}), "--exclusive is given twice.");
}

TEST(OperatorFlags, HasEachAttributeOfEachOperatorOnce) {
  std::set<std::string> names;
  for (const Flag& flag : OperatorFlags({})) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_NE(flag.help, "") << flag.name;
  }
  for (const OperatorSchema* const schema : Operators()) {
    for (const AttributeSchema& attribute : schema->attributes) {
      EXPECT_THAT(names, Contains(FlagOf(attribute))) << schema->name;
    }
  }
}

TEST(OperatorFlags, AttributesOfOneFlagHaveTheSameChoices) {
  for (const Flag& flag : OperatorFlags({})) {
    for (const OperatorSchema* const schema : Operators()) {
      for (const AttributeSchema& attribute : schema->attributes) {
        if (FlagOf(attribute) != flag.name) continue;
        EXPECT_EQ(attribute.choices.size(), flag.choices.size()) << schema->name << flag.name;
        for (const std::string& choice : flag.choices) {
          EXPECT_TRUE(ParseChoice(*schema, attribute, choice).ok()) << schema->name << choice;
        }
      }
    }
  }
}

// EncodeOperator finds the fields of the contract by the names of the schema, and adds 1 to
// choices.
TEST(EncodeOperator, EverySchemaHasItsMessage) {
  for (const OperatorSchema* const schema : Operators()) {
    if (!schema->has_own_message()) continue;
    SCOPED_TRACE(std::string(schema->name));
    const auto* const field =
        v1::OperatorDesc::descriptor()->FindFieldByName(std::string(schema->wire_name));
    ASSERT_NE(field, nullptr);
    const auto find = [&](absl::string_view name) {
      return field->message_type()->FindFieldByName(std::string(name));
    };
    for (const TensorSchema& input : schema->inputs) EXPECT_NE(find(input.name), nullptr);
    for (const TensorSchema& output : schema->outputs) EXPECT_NE(find(output.name), nullptr);
    for (const AttributeSchema& attribute : schema->attributes) {
      ASSERT_NE(find(attribute.name), nullptr) << attribute.name;
      for (size_t i = 0; i < attribute.choices.size(); ++i) {
        const auto* const value =
            find(attribute.name)->enum_type()->FindValueByNumber(static_cast<int>(i) + 1);
        ASSERT_NE(value, nullptr) << attribute.choices[i];
        EXPECT_THAT(value->name(), ::testing::EndsWith("_" + std::string(attribute.choices[i])));
      }
    }
  }
}

TEST(Reduces, FollowsFromTheSchema) {
  std::vector<std::string> reducing;
  for (const OperatorSchema* const schema : Operators()) {
    if (Reduces(*schema)) reducing.emplace_back(schema->name);
  }
  EXPECT_THAT(reducing, ElementsAre("argmin", "argmax", "reduce"));
}

}  // namespace
}  // namespace opmill
