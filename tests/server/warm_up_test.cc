#include "server/models/warm_up.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "server/models/config_text.h"
#include "server/models/model_config.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

std::string ConfigText(const std::string& input, const std::string& fields = "batch_size: 1") {
  return absl::StrCat(
      "backend: 'opmill' parameters { key: 'operator' value { string_value: 'argmax' } } "
      "parameters { key: 'axes' value { string_value: '1' } } "
      "input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 6 ] } "
      "model_warmup { name: 'first' inputs { key: 'x' value { ",
      input, " } } ", fields, " }");
}

Model ModelOf(const inference::ModelConfig& config) { return **MakeOperatorModel(config); }

Model ModelOf(const std::string& text) { return ModelOf(ParseConfig("a", text)->config); }

TEST(WarmUp, IsTheSameInTextAndJson) {
  const auto text = ParseConfig(
      "a",
      ConfigText("data_type: TYPE_FP32 dims: [ 3, 6 ] zero_data: true", "batch_size: 1 count: 2"));
  const auto json = ParseJsonConfig("a", R"({
      "backend": "opmill",
      "parameters": {"operator": {"string_value": "argmax"}, "axes": {"string_value": "1"}},
      "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1", "6"]}],
      "model_warmup": [{"name": "first", "batch_size": 1, "count": 2, "inputs": {
          "x": {"data_type": "TYPE_FP32", "dims": ["3", "6"], "zero_data": true}}}]})");
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_TRUE(text->without_effect.empty());
  for (const auto& parsed : {*text, *json}) {
    const auto warm_up = ReadWarmUp(ModelOf(parsed.config), 0);
    ASSERT_TRUE(warm_up.ok()) << warm_up.status();
    EXPECT_EQ(warm_up->count, 2u);
    EXPECT_THAT(warm_up->inputs[0].sizes, ElementsAre(3, 6));
  }
}

TEST(WarmUp, RandomElementsAreSmallNumbersAndTheSameFromAnyOffset) {
  const auto warm_up =
      ReadWarmUp(ModelOf(ConfigText("data_type: TYPE_FP32 dims: [ 3, 6 ] random_data: true")), 0);
  ASSERT_TRUE(warm_up.ok()) << warm_up.status();
  EXPECT_EQ(warm_up->count, 1u);
  std::array<std::byte, 72> all = {};
  warm_up->elements[0](0, absl::MakeSpan(all));
  std::array<std::byte, 10> part = {};
  warm_up->elements[0](31, absl::MakeSpan(part));
  EXPECT_EQ(std::memcmp(part.data(), all.data() + 31, part.size()), 0);
  for (size_t i = 0; i < all.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, all.data() + i, sizeof(value));
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
  }
}

TEST(WarmUp, NamesTheFieldThatIsWrong) {
  const auto field_of = [](const std::string& input, const std::string& fields = "batch_size: 1") {
    return FieldOf(ReadWarmUp(ModelOf(ConfigText(input, fields)), 0).status());
  };
  EXPECT_EQ(field_of("data_type: TYPE_FP32 dims: [ 3, 6 ] zero_data: true", ""),
            "model_warmup[0].batch_size");
  EXPECT_EQ(field_of("data_type: TYPE_INT32 dims: [ 3, 6 ] zero_data: true"),
            "model_warmup[0].inputs.x.data_type");
  EXPECT_EQ(field_of("data_type: TYPE_FP32 dims: [ 3, -1 ] zero_data: true"),
            "model_warmup[0].inputs.x.dims[1]");
  EXPECT_EQ(field_of("data_type: TYPE_FP32 dims: [ 3 ] zero_data: true"),
            "model_warmup[0].inputs.x.dims");
  EXPECT_EQ(field_of("data_type: TYPE_FP32 dims: [ 3, 6 ]"), "model_warmup[0].inputs.x");
}

}  // namespace
}  // namespace opmill
