#include "server/api/request_decoder.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "opmill/v1/service.pb.h"
#include "server/api/server_info.h"
#include "tests/server/gated_device.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

absl::StatusOr<OperatorDesc> DecodeText(const std::string& text,
                                        std::optional<v1::FeatureLevel> level = std::nullopt) {
  return DecodeOperator(FromText<v1::OperatorDesc>(text), level);
}

constexpr char kInput[] = "input { data_type: DATA_TYPE_FLOAT32 sizes: [2, 3, 4] } ";

// The decoder keeps some operators, fewer than these.
TEST(DecodeOperator, ReadsTheSameAgain) {
  constexpr uint32_t kOperators = 100;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t size = 1; size <= kOperators; ++size) {
      v1::OperatorDesc message;
      v1::HardmaxDesc& hardmax = *message.mutable_hardmax();
      hardmax.mutable_input()->set_data_type(v1::DATA_TYPE_FLOAT32);
      hardmax.mutable_input()->add_sizes(size);
      hardmax.add_axes(0);
      const TensorDesc tensor{DataType::kFloat32, {size}, {}};
      for (int i = 0; i < 2; ++i) {
        const auto desc = DecodeOperator(message, std::nullopt);
        ASSERT_TRUE(desc.ok()) << desc.status();
        EXPECT_EQ(*desc, OperatorDesc(HardmaxDesc{.input = tensor, .output = tensor, .axes = {0}}));
      }
    }
  }
}

TEST(DecodeOperator, ChecksAnOperatorAgainAtAnotherLevel) {
  const std::string text =
      std::string("arg_min {") + kInput + "axes: 0 axis_direction: AXIS_DIRECTION_INCREASING }";
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(DecodeText(text).ok());
    EXPECT_EQ(FieldOf(DecodeText(text, v1::FEATURE_LEVEL_1_0).status()), "feature_level");
  }
}

TEST(DecodeOperator, ReadsEveryOperatorAndCompletesItsOutputs) {
  const TensorDesc input{DataType::kFloat32, {2, 3, 4}, {}};
  const TensorDesc strided{DataType::kInt64, {2, 1, 4}, {8, 8, 2}};
  const std::string strided_text =
      "{ data_type: DATA_TYPE_INT64 sizes: [2, 1, 4] strides: [8, 8, 2] }";
  const std::string in = kInput;

  auto desc = DecodeText("arg_min { " + in + "axes: 1 axis_direction: AXIS_DIRECTION_INCREASING }");
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(*desc,
            OperatorDesc(ArgReduceDesc{.extreme = Extreme::kMin,
                                       .input = input,
                                       .output = TensorDesc{DataType::kUint32, {2, 1, 4}, {}},
                                       .axes = {1},
                                       .axis_direction = AxisDirection::kIncreasing}));

  desc =
      DecodeText("arg_max { " + in + "axes: 1 axis_direction: AXIS_DIRECTION_DECREASING output " +
                 strided_text + "}");
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(*desc, OperatorDesc(ArgReduceDesc{.extreme = Extreme::kMax,
                                              .input = input,
                                              .output = strided,
                                              .axes = {1},
                                              .axis_direction = AxisDirection::kDecreasing}));

  desc = DecodeText("top_k { " + in +
                    "axis: 2 k: 3 axis_direction: AXIS_DIRECTION_DECREASING output_indices { "
                    "data_type: DATA_TYPE_UINT64 sizes: [2, 3, 3] } }");
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(*desc,
            OperatorDesc(TopKDesc{.input = input,
                                  .output_values = TensorDesc{DataType::kFloat32, {2, 3, 3}, {}},
                                  .output_indices = TensorDesc{DataType::kUint64, {2, 3, 3}, {}},
                                  .axis = 2,
                                  .k = 3,
                                  .axis_direction = AxisDirection::kDecreasing}));

  desc = DecodeText("hardmax { " + in + "axes: [0, 2] }");
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(*desc, OperatorDesc(HardmaxDesc{.input = input, .output = input, .axes = {0, 2}}));
}

// The decoder finds fields by the names in the schema.
TEST(DecodeOperator, FindsEveryNameOfASchemaInItsMessage) {
  for (const OperatorSchema* const schema : Operators()) {
    if (!schema->has_own_message()) continue;
    const auto* const field =
        v1::OperatorDesc::descriptor()->FindFieldByName(std::string(schema->wire_name));
    ASSERT_NE(field, nullptr) << schema->wire_name;
    std::set<std::string> expected;
    for (const TensorSchema& input : schema->inputs) expected.emplace(input.name);
    for (const TensorSchema& output : schema->outputs) expected.emplace(output.name);
    for (const AttributeSchema& attribute : schema->attributes) expected.emplace(attribute.name);
    std::set<std::string> fields;
    for (int i = 0; i < field->message_type()->field_count(); ++i) {
      fields.insert(field->message_type()->field(i)->name());
    }
    EXPECT_EQ(fields, expected) << schema->wire_name;
  }
}

TEST(DecodeOperator, ReadsTheNamedForm) {
  const std::string inputs = "inputs { data_type: DATA_TYPE_INT8 sizes: [2, 3] } ";
  absl::StatusOr<OperatorDesc> desc =
      DecodeText("named { name: 'clip' " + inputs +
                 "attributes { key: 'min' value { signed_number: -3 } } "
                 "attributes { key: 'max' value { unsigned_number: 7 } } }");
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(ToString(*desc), "clip(input=INT8[2,3], output=INT8[2,3], min=-3, max=7)");
  desc = DecodeText("named { name: 'cast' " + inputs +
                    "outputs { data_type: DATA_TYPE_FLOAT16 sizes: [2, 3] } }");
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(desc->outputs[0]->data_type, DataType::kFloat16);
}

TEST(DecodeOperator, RefusesMistakesInTheNamedForm) {
  const std::string input = "inputs { data_type: DATA_TYPE_INT8 sizes: [2, 3] } ";
  const std::string bounds =
      "attributes { key: 'min' value { signed_number: -3 } } "
      "attributes { key: 'max' value { number: 1.5 } } ";
  const struct {
    std::string text;
    std::string field;
    std::string sentence;
  } kRefusals[] = {
      {"name: 'clop' " + input, "name",
       "name (\"clop\") is none of the operators of this server; GetServerInfo lists them."},
      {"name: 'multiply' " + input, "inputs", "inputs has 1 tensor, but multiply has 2."},
      {"name: 'multiply' " + input + "inputs { data_type: DATA_TYPE_INT8 sizes: [2, 4] }",
       "inputs[1].sizes[1]", "b.sizes[1] is 4, but a.sizes[1] is 3."},
      {"name: 'clip' " + input, "attributes[min]", "min is not given."},
      {"name: 'clip' " + input + bounds, "attributes[max]",
       "max (1.5) is not a number of INT8: an integer from -128 to 127."},
      {"name: 'abs' " + input + "attributes { key: 'k' value { flag: true } }", "attributes",
       "abs has no attribute \"k\"."},
      {"name: 'elu' " + input + "attributes { key: 'alpha' value { flag: true } }",
       "attributes[alpha]", "alpha is not a value of the kind that the operator takes."},
      {"name: 'elu' " + input + "attributes { key: 'alpha' value { choice: 'large' } }",
       "attributes[alpha]",
       "alpha (\"large\") is not a value of the kind that the operator takes."},
      {"name: 'cast' " + input, "outputs[0]",
       "output is not given; its type is the type to cast to."},
  };
  for (const auto& [text, field, sentence] : kRefusals) {
    const absl::Status status = DecodeText("named { " + text + "}").status();
    EXPECT_EQ(status.message(), sentence);
    EXPECT_EQ(FieldOf(status).value_or("no field"), "operator.named." + field);
  }
}

TEST(DecodeOperator, ReadsEveryReduceFunctionByItsName) {
  for (uint32_t i = 0; i < kReduceFunctionCount; ++i) {
    const ReduceFunction function = static_cast<ReduceFunction>(i);
    const std::string wire_name = "REDUCE_FUNCTION_" + std::string(ToString(function));
    const auto desc =
        DecodeText("reduce { " + std::string(kInput) + "axes: 1 function: " + wire_name + "}");
    ASSERT_TRUE(desc.ok()) << desc.status();
    EXPECT_EQ(ReduceDesc::From(*desc).function, function);
  }
}

TEST(DecodeOperator, NamesDataTypesAndLevelsAsTheEngineDoes) {
  for (const DataType type : kAllDataTypes) {
    EXPECT_EQ(v1::DataType_Name(EncodeDataType(type)), "DATA_TYPE_" + std::string(ToString(type)));
  }
  for (const FeatureLevel level : kAllFeatureLevels) {
    std::string name = "FEATURE_LEVEL_" + ToString(level);
    name[name.size() - 2] = '_';
    EXPECT_EQ(v1::FeatureLevel_Name(EncodeFeatureLevel(level)), name);
  }
}

TEST(EncodeTensor, WritesWhatTheDecoderReads) {
  for (const TensorDesc& input :
       {TensorDesc{DataType::kInt8, {7}, {}}, TensorDesc{DataType::kFloat16, {2, 3}, {0, 1}},
        TensorDesc{DataType::kUint64, {1, 2, 3, 1, 2, 3, 1, 4}, {}}}) {
    v1::OperatorDesc desc;
    v1::ReduceDesc& reduce = *desc.mutable_reduce();
    EncodeTensor(input, *reduce.mutable_input());
    reduce.set_function(v1::REDUCE_FUNCTION_MAX);
    reduce.add_axes(0);
    const auto decoded = DecodeOperator(desc, std::nullopt);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->inputs[0], input);
  }
}

struct RefusedRequest {
  std::string name;
  std::string desc;
  std::string field;
  std::string sentence;
  int level = 0;  // 0: absent
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

void PrintTo(const RefusedRequest& refusal, std::ostream* out) { *out << refusal.desc; }

class DecodeRefusals : public ::testing::TestWithParam<RefusedRequest> {};

TEST_P(DecodeRefusals, NameTheFieldAndSayWhy) {
  const RefusedRequest& refusal = GetParam();
  const auto level = refusal.level == 0
                         ? std::nullopt
                         : std::optional(static_cast<v1::FeatureLevel>(refusal.level));
  const absl::Status status = DecodeText(refusal.desc, level).status();
  EXPECT_EQ(status.code(), refusal.code);
  EXPECT_EQ(FieldOf(status).value_or("no field"), refusal.field);
  EXPECT_EQ(std::string(status.message()), refusal.sentence);
}

const std::string& In() {
  static const std::string* const text = new std::string(kInput);
  return *text;
}

constexpr char kUp[] = "axis_direction: AXIS_DIRECTION_INCREASING ";

INSTANTIATE_TEST_SUITE_P(
    , DecodeRefusals,
    ::testing::ValuesIn(std::vector<RefusedRequest>{
        {"NoOperator", "", "operator.desc",
         "operator names none of the operators of this server: arg_min, arg_max, reduce, top_k, "
         "hardmax, element_wise_add, "
         "cumulative_summation."},
        {"NoInput", "hardmax { axes: 0 }", "operator.hardmax.input", "input is not given."},
        {"NoInputOfTopK", "top_k { k: 1 }", "operator.top_k.input", "input is not given."},
        {"NoDataType", "arg_min { input { sizes: 3 } axes: 0 }", "operator.arg_min.input.data_type",
         "input.data_type is not given."},
        {"NoDataTypeOfTheOutput", "arg_max { " + In() + "output { sizes: 3 } axes: 0 }",
         "operator.arg_max.output.data_type", "output.data_type is not given."},
        {"NoDataTypeOfTheValues", "top_k { " + In() + "output_values { } k: 1 }",
         "operator.top_k.output_values.data_type", "output_values.data_type is not given."},
        {"NoDataTypeOfTheIndices", "top_k { " + In() + "output_indices { } k: 1 }",
         "operator.top_k.output_indices.data_type", "output_indices.data_type is not given."},
        {"UnknownDataType", "hardmax { input { data_type: 99 sizes: 3 } axes: 0 }",
         "operator.hardmax.input.data_type",
         "input.data_type (99) is not a data type that DirectML names."},
        {"NegativeDataType", "hardmax { input { data_type: -1 sizes: 3 } axes: 0 }",
         "operator.hardmax.input.data_type",
         "input.data_type (4294967295) is not a data type that DirectML names."},
        {"Float64", "hardmax { input { data_type: DATA_TYPE_FLOAT64 sizes: 3 } axes: 0 }",
         "operator.hardmax.input.data_type", "input.data_type FLOAT64 is taken by no operator."},
        {"NoFunction", "reduce { " + In() + "axes: 0 }", "operator.reduce.function",
         "function is not given."},
        {"UnknownFunction", "reduce { " + In() + "axes: 0 function: 13 }",
         "operator.reduce.function", "function (13) is unknown to this server; 1 to 12 are known."},
        {"NegativeFunction", "reduce { " + In() + "axes: 0 function: -1 }",
         "operator.reduce.function", "function (-1) is unknown to this server; 1 to 12 are known."},
        {"NoDirection", "arg_min { " + In() + "axes: 0 }", "operator.arg_min.axis_direction",
         "axis_direction is not given."},
        {"UnknownDirection", "arg_max { " + In() + "axes: 0 axis_direction: 3 }",
         "operator.arg_max.axis_direction",
         "axis_direction (3) is unknown to this server; 1 to 2 are known."},
        {"NoDirectionOfTopK", "top_k { " + In() + "axis: 0 k: 1 }", "operator.top_k.axis_direction",
         "axis_direction is not given."},
        {"AxisTooLarge", "arg_min { " + In() + "axes: [0, 3] " + kUp + "}",
         "operator.arg_min.axes[1]", "axes[1] (3) is not below the dimension count (3) of input."},
        {"KOfZero", "top_k { " + In() + "axis: 0 k: 0 " + kUp + "}", "operator.top_k.k",
         "k (0) is below 1."},
        {"KTooLarge", "top_k { " + In() + "axis: 1 k: 4 " + kUp + "}", "operator.top_k.k",
         "k (4) is larger than the size (3) of axis (1)."},
        {"TopKAxisTooLarge", "top_k { " + In() + "axis: 3 k: 1 " + kUp + "}", "operator.top_k.axis",
         "axis (3) is not below the dimension count (3) of input."},
        {"OutputOfAnotherSize",
         "hardmax { " + In() + "axes: 0 output { data_type: DATA_TYPE_FLOAT32 sizes: [2, 3, 5] } }",
         "operator.hardmax.output.sizes[2]",
         "output.sizes[2] is 5, but 4 is what the operator writes there."},
        {"LevelUnspecified", "hardmax { " + In() + "axes: 0 }", "feature_level",
         "feature_level (1) is none of 1.0 (4096), 2.0 (8192), 2.1 (8448), 3.0 (12288), 3.1 "
         "(12544), 4.0 (16384), 4.1 (16640), 5.0 (20480), 5.1 (20736), 5.2 (20992), 6.0 (24576), "
         "6.1 (24832), 6.2 (25088), 6.3 (25344), 6.4 (25600); leave it out for the newest.",
         1},
        {"TypeNewerThanTheLevel",
         "reduce { input { data_type: DATA_TYPE_INT64 sizes: 3 } axes: 0 function: "
         "REDUCE_FUNCTION_SUM }",
         "operator.reduce.input.data_type",
         "At feature level 3.0 reduce SUM takes FLOAT32, FLOAT16, INT32, UINT32, but "
         "input.data_type is INT64; feature level 5.0 allows this request.",
         v1::FEATURE_LEVEL_3_0, absl::StatusCode::kFailedPrecondition},
        {"OperatorNewerThanTheLevel", "arg_min { " + In() + "axes: 0 " + kUp + "}", "feature_level",
         "At feature level 1.0 argmin does not exist; feature level 3.0 allows this request.",
         v1::FEATURE_LEVEL_1_0, absl::StatusCode::kFailedPrecondition},
    }),
    [](const ::testing::TestParamInfo<RefusedRequest>& row) { return row.param.name; });

TEST(DecodeOperator, RefusesAFeatureLevelThatIsGivenAsUnspecified) {
  const absl::Status status =
      DecodeText("hardmax { " + In() + "axes: 0 }", v1::FEATURE_LEVEL_UNSPECIFIED).status();
  EXPECT_EQ(FieldOf(status), "feature_level");
  EXPECT_THAT(std::string(status.message()), HasSubstr("feature_level (0) is none of 1.0 (4096)"));
}

TEST(DecodeRequest, AppliesTheFeatureLevelOfItsMessage) {
  const std::string text =
      "operator { reduce { input { data_type: DATA_TYPE_INT64 sizes: 3 } axes: 0 function: "
      "REDUCE_FUNCTION_SUM } } ";
  const auto begin = FromText<v1::BeginExecution>(text + "feature_level: FEATURE_LEVEL_4_1");
  EXPECT_EQ(DecodeRequest(begin).status().code(), absl::StatusCode::kFailedPrecondition);
  const auto execute = FromText<v1::ExecuteRequest>(text + "feature_level: FEATURE_LEVEL_5_0");
  EXPECT_TRUE(DecodeRequest(execute).ok());
  EXPECT_TRUE(DecodeRequest(FromText<v1::CompileOperatorRequest>(text)).ok());
}

// As the sentence says that refuses a name.
TEST(DecodeOperator, KnowsTheNamesThatGetServerInfoLists) {
  v1::GetServerInfoResponse info;
  EncodeServerInfo(GatedDevice(), Limits(), info);
  std::set<std::string> names;
  for (const v1::OperatorSupport& row : info.operators()) names.insert(row.operator_());
  EXPECT_EQ(names.size(), Operators().size());
  v1::OperatorDesc desc;
  for (const std::string& name : names) {
    desc.mutable_named()->set_name(name);
    EXPECT_THAT(std::string(DecodeOperator(desc, std::nullopt).status().message()),
                ::testing::Not(HasSubstr("is none of the operators")));
  }
  desc.mutable_named()->set_name("nothing");
  EXPECT_EQ(DecodeOperator(desc, std::nullopt).status().message(),
            "name (\"nothing\") is none of the operators of this server; GetServerInfo lists "
            "them.");
}

}  // namespace
}  // namespace opmill
