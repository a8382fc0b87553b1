#include "kernels/onnx/specialize.h"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/operator_table.h"
#include "kernels/onnx/read_model.h"
#include "tests/onnx/model_text.h"

namespace opmill::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The types of the outputs, "FLOAT[2] INT64[3]", or the refusal.
std::string TypesOf(const absl::StatusOr<Graph>& graph) {
  if (!graph.ok()) return std::string(graph.status().message());
  std::string text;
  for (const Output& output : graph->outputs) {
    absl::StrAppend(&text, text.empty() ? "" : " ", ToString(graph->values[output.value].type));
  }
  return text;
}

// The constant that the first output is.
std::vector<double> ConstantOf(const absl::StatusOr<Graph>& graph) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  const Value& value = graph->values[graph->outputs[0].value];
  EXPECT_NE(value.constant, nullptr);
  std::vector<double> numbers;
  for (size_t i = 0; value.constant != nullptr && i < *ElementCount(value.type.sizes); ++i) {
    numbers.push_back(LoadNumber<double>(value.type.element, value.constant->data(), i));
  }
  return numbers;
}

TEST(Specialize, BindsFreeDimensions) {
  const std::string free =
      " input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' }"
      " dim { dim_value: 3 } } } } }" +
      NodeText("Relu", "x", "y") + OutputText("y");
  EXPECT_EQ(TypesOf(Specialized(free, 17, {.sizes = {{"x", {2, 3}}}})), "FLOAT[2,3]");
  EXPECT_EQ(TypesOf(Specialized(free)),
            "The sizes of input 'x' are not fixed by the model, and not given.");
  EXPECT_EQ(TypesOf(Specialized(free, 17, {.sizes = {{"x", {2, 4}}}})),
            "Input 'x' has the sizes [2,4], but the model says [n,3].");
  EXPECT_EQ(TypesOf(Specialized(free, 17, {.sizes = {{"z", {2}}}})), "The model has no input 'z'.");
  EXPECT_THAT(TypesOf(Specialized(free, 17, {.sizes = {{"x", {int64_t{1} << 40, 3}}}})),
              HasSubstr("more than 4294967295 elements"));
}

// y = reshape(x, [shape(x)[0] * 2, -1])
TEST(Specialize, ComputesShapeArithmetic) {
  const absl::StatusOr<Graph> graph =
      Specialized(InputText("x", {2, 6}) + IntegersText("zero", {0}) + IntegersText("two", {2}) +
                  IntegersText("rest", {-1}) + NodeText("Shape", "x", "shape") +
                  NodeText("Gather", "shape,zero", "n") + NodeText("Mul", "n,two", "m") +
                  NodeText("Concat", "m,rest", "sizes", IntText("axis", 0)) +
                  NodeText("Reshape", "x,sizes", "y") + OutputText("y"));
  EXPECT_EQ(TypesOf(graph), "FLOAT[4,3]");
  EXPECT_EQ(OperatorsOf(*graph), "Reshape");
}

TEST(Specialize, ComputesConstantsOfManyOperators) {
  EXPECT_THAT(ConstantOf(Specialized(IntegersText("a", {0}) + IntegersText("b", {6}) +
                                     IntegersText("c", {2}) + NodeText("Range", "a,b,c", "y") +
                                     OutputText("y"))),
              ElementsAre(0, 2, 4));
  EXPECT_THAT(ConstantOf(Specialized(IntegersText("x", {1, 2, 3}) + IntegersText("b", {-1}) +
                                     IntegersText("e", {-9}) + IntegersText("a", {0}) +
                                     IntegersText("s", {-1}) + NodeText("Slice", "x,b,e,a,s", "y") +
                                     OutputText("y"))),
              ElementsAre(3, 2, 1));
  EXPECT_THAT(ConstantOf(Specialized(IntegersText("x", {7}) + IntegersText("s", {2, 2}) +
                                     NodeText("Expand", "x,s", "y") + OutputText("y"))),
              ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(
      ConstantOf(Specialized(IntegersText("x", {3, 0, 5}) + IntegersText("z", {0, 0, 0}) +
                             NodeText("Equal", "x,z", "c") + NodeText("Where", "c,z,x", "w") +
                             NodeText("Cast", "w", "y", IntText("to", 1)) + OutputText("y"))),
      ElementsAre(3, 0, 5));
}

TEST(Specialize, LeavesLargeConstantsAsTheyAre) {
  // A scalar, and a view of 400 MB.
  const absl::StatusOr<Graph> graph = Specialized(
      IntegersText("s", {10000, 10000}) + NodeText("ConstantOfShape", "s", "y") + OutputText("y"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(OperatorsOf(*graph), "Expand");
  // INT8 weights that become FLOAT stay INT8.
  const absl::StatusOr<Graph> cast =
      Specialized(absl::StrCat(" initializer { name: 'w' data_type: 3 dims: 70000 raw_data: '",
                               std::string(70000, 'a'), "' }") +
                  NodeText("Cast", "w", "y", IntText("to", 1)) + OutputText("y"));
  ASSERT_TRUE(cast.ok()) << cast.status();
  EXPECT_EQ(OperatorsOf(*cast), "Cast");
}

TEST(Specialize, AnIfIsItsBranch) {
  for (const bool condition : {false, true}) {
    const absl::StatusOr<Graph> graph = Specialized(
        IfText(), 17,
        {.values = {{"c", TensorOf(ElementType::kBool, {}, std::vector<uint8_t>{condition})}}});
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(OperatorsOf(*graph), condition ? "Neg" : "Abs");
    EXPECT_EQ(graph->inputs.size(), 1u);
  }
  EXPECT_EQ(TypesOf(Specialized(IfText())),
            "Node 'y' (If): its condition is computed from data, so that its branch is not known "
            "before a run.");
}

TEST(FormInputs, AreThoseThatSizesOrBranchesDependOn) {
  absl::StatusOr<Graph> graph = ReadModel(ModelBytes(IfText()));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(FormInputs(*graph), ElementsAre("c"));
  graph =
      ReadModel(ModelBytes(InputText("x", {4}) + InputText("n", {1}, 7) + InputText("m", {1}, 7) +
                           IntegersText("one", {1}) + NodeText("Add", "n,one", "s") +
                           NodeText("Reshape", "x,s", "y") + NodeText("Shape", "m", "t") +
                           NodeText("Reshape", "x,t", "z") + OutputText("y") + OutputText("z")));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(FormInputs(*graph), ElementsAre("n"));
}

TEST(Specialize, NamesAllNodesThatCannotBePartOfAProgram) {
  EXPECT_EQ(TypesOf(Specialized(InputText("x", {4}) + InputText("n", {1}, 7) +
                                NodeText("Loop", "x", "a") + NodeText("Relu", "a", "b") +
                                NodeText("NonZero", "x", "c") + NodeText("Reshape", "x,n", "d") +
                                NodeText("Relu", "x", "e", FloatText("f", 1)) + OutputText("b"))),
            "Node 'a' (Loop): the operator is not supported. "
            "Node 'c' (NonZero): input 0 ('x') must be constant. "
            "Node 'd' (Reshape): the form of its output depends on the values of 'n', which are "
            "not known before a run. "
            "Node 'e' (Relu): attribute 'f' is not supported.");
}

TEST(Specialize, RefusesInvalidNodes) {
  const auto refusal = [](const std::string& nodes) {
    return TypesOf(
        Specialized(InputText("x", {2, 3}) + InputText("z", {4}) + nodes + OutputText("y")));
  };
  EXPECT_EQ(refusal(NodeText("Add", "x,z", "y")),
            "Node 'y' (Add): sizes 3 and 4 do not broadcast.");
  EXPECT_EQ(refusal(NodeText("Concat", "x,z", "y", IntText("axis", 0))),
            "Node 'y' (Concat): input 1 (FLOAT[4]) does not fit to input 0 (FLOAT[2,3]).");
  EXPECT_EQ(refusal(IntegersText("s", {7, -1}) + NodeText("Reshape", "x,s", "y")),
            "Node 'y' (Reshape): cannot reshape FLOAT[2,3] to FLOAT[7,0].");
  EXPECT_EQ(refusal(NodeText("Transpose", "x", "y", IntsText("perm", {0, 0}))),
            "Node 'y' (Transpose): axis (0) is given twice.");
  EXPECT_EQ(refusal(NodeText("Softmax", "x", "y", IntText("axis", 2))),
            "Node 'y' (Softmax): axis (2) is not from -2 to 1.");
  EXPECT_EQ(refusal(NodeText("MatMul", "x,x", "y")),
            "Node 'y' (MatMul): it multiplies FLOAT[2,3] with FLOAT[2,3].");
  EXPECT_EQ(refusal(NodeText("Relu", "x,x", "y")), "Node 'y' (Relu): it has 2 inputs, not 1 to 1.");
  EXPECT_NE(refusal(" initializer { name: 'i' data_type: 1 float_data: [1] }" +
                    NodeText("Gather", "x,i", "y"))
                .find("Node 'y' (Gather): "),
            std::string::npos);
}

TEST(Specialize, NormalizationBecomesPartOfAConvolution) {
  const auto floats = [](absl::string_view name, const std::string& dims, const std::string& data) {
    return absl::StrCat(" initializer { name: '", name, "' data_type: 1 ", dims, " float_data: [",
                        data, "] }");
  };
  const absl::StatusOr<Graph> graph = Specialized(
      InputText("x", {1, 1, 4}) + floats("w", "dims: [2, 1, 1]", "1, 2") +
      floats("scale", "dims: 2", "2, 4") + floats("bias", "dims: 2", "1, -1") +
      floats("mean", "dims: 2", "3, 1") + floats("variance", "dims: 2", "4, 16") +
      NodeText("Conv", "x,w", "c") +
      NodeText("BatchNormalization", "c,scale,bias,mean,variance", "y", FloatText("epsilon", 0)) +
      OutputText("y"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(OperatorsOf(*graph), "Conv");
  const std::vector<ValueId>& inputs = graph->nodes[0].inputs;
  ASSERT_EQ(inputs.size(), 3u);
  const auto at = [&](size_t input, size_t i) {
    const Value& value = graph->values[inputs[input]];
    return LoadNumber<float>(value.type.element, value.constant->data(), i);
  };
  EXPECT_EQ(at(1, 0), 1);   // 1 * 2 / 2
  EXPECT_EQ(at(1, 1), 2);   // 2 * 4 / 4
  EXPECT_EQ(at(2, 0), -2);  // 1 - 3
  EXPECT_EQ(at(2, 1), -2);  // -1 - 1
}

TEST(Specialize, ReadsOpset6AsItWas) {
  const std::string x = InputText("x", {2, 3, 4, 5});
  const absl::StatusOr<Graph> slopes = Specialized(
      x + InputText("slope", {3}) + NodeText("PRelu", "x,slope", "y") + OutputText("y"), 6);
  ASSERT_TRUE(slopes.ok()) << slopes.status();
  ASSERT_EQ(OperatorsOf(*slopes), "Reshape, PRelu");
  EXPECT_EQ(slopes->values[slopes->nodes[0].outputs[0]].type.sizes, (Sizes{3, 1, 1}));

  const std::string sum = InputText("b", {5}) + OutputText("y");
  EXPECT_TRUE(Specialized(x + sum + NodeText("Add", "x,b", "y", IntText("broadcast", 1)), 6).ok());
  EXPECT_THAT(
      Specialized(x + sum + NodeText("Add", "x,b", "y", IntText("axis", 3)), 6).status().message(),
      HasSubstr("axis"));

  const std::string channels = InputText("s", {3}) + OutputText("y");
  const auto normalize = [&](absl::string_view more) {
    return Specialized(x + channels + NodeText("BatchNormalization", "x,s,s,s,s", "y", more), 6)
        .status();
  };
  EXPECT_TRUE(normalize(IntText("is_test", 1)).ok());
  EXPECT_THAT(normalize("").message(), HasSubstr("training is not supported"));
}

TEST(Specialize, AResultThatIsReadElsewhereIsNotScaled) {
  const absl::StatusOr<Graph> graph =
      Specialized(InputText("x", {1, 1, 4}) +
                  " initializer { name: 'w' data_type: 1 dims: [1, 1, 1] float_data: [2] }"
                  " initializer { name: 's' data_type: 1 float_data: [3] }" +
                  NodeText("Conv", "x,w", "c") + NodeText("Mul", "c,s", "y") + OutputText("y") +
                  OutputText("c"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(OperatorsOf(*graph), "Conv, Mul");
}

// A table in INT8 (type 3), and its scale.
TEST(Specialize, GathersRowsBeforeTheyAreScaled) {
  const std::string table =
      " initializer { name: 'w' data_type: 3 dims: 40000 dims: 4 raw_data: '" +
      std::string(160000, 'a') + "' } initializer { name: 's' data_type: 1 float_data: 0.5 }" +
      InputText("i", {2, 3}, 7) + NodeText("Cast", "w", "f", IntText("to", 1)) +
      NodeText("Mul", "f,s", "t");
  const auto rows = Specialized(table + NodeText("Gather", "t,i", "y") + OutputText("y"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(OperatorsOf(*rows), "Gather, Cast, Mul");
  EXPECT_EQ(TypesOf(rows), "FLOAT[2,3,4]");
  const auto columns =
      Specialized(table + NodeText("Gather", "t,i", "y", IntText("axis", 1)) + OutputText("y"));
  EXPECT_EQ(OperatorsOf(*columns), "Cast, Mul, Gather");
}

// Indices of INT32, and 0, 1, 2, ... as INT32.
std::string OneHotText(absl::string_view numbers) {
  return InputText("x", {5, 1}, 6) +
         absl::StrCat(" initializer { name: 'n' data_type: 6 dims: [1, 3] int32_data: [", numbers,
                      "] } initializer { name: 't' data_type: 1 dims: [3, 2] "
                      "float_data: [1, 2, 3, 4, 5, 6] } initializer { name: 'b' data_type: 1 "
                      "dims: [1, 2] float_data: [10, 20] }") +
         NodeText("Equal", "x,n", "e") + NodeText("Cast", "e", "c", IntText("to", 1)) +
         NodeText("MatMul", "c,t", "p") + NodeText("Add", "p,b", "s") +
         NodeText("Mul", "s,s", "y") + OutputText("y");
}

// What is no row of the table selects the row that zeros make.
TEST(Specialize, AProductOfAOneHotEncodingGathersFunctionsOfRows) {
  const auto graph = Specialized(OneHotText("0, 1, 2"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(OperatorsOf(*graph), "Less, Where, Min, Reshape, Gather");
  EXPECT_EQ(TypesOf(graph), "FLOAT[5,2]");
  const Value& table = graph->values[graph->nodes.back().inputs[0]];
  ASSERT_NE(table.constant, nullptr);
  std::vector<float> rows(8);
  ASSERT_EQ(table.constant->size(), rows.size() * sizeof(float));
  std::memcpy(rows.data(), table.constant->data(), table.constant->size());
  EXPECT_THAT(rows, testing::ElementsAre(121, 484, 169, 576, 225, 676, 100, 400));
  EXPECT_EQ(OperatorsOf(*Specialized(OneHotText("0, 2, 1"))), "Equal, Cast, MatMul, Add, Mul");
}

TEST(Specialize, ASquareIsAProduct) {
  const auto graph = [](absl::string_view exponent) {
    return Specialized(InputText("x", {4}) + " initializer { name: 'e' data_type: 1 float_data: " +
                       std::string(exponent) + " }" + NodeText("Pow", "x,e", "y") +
                       OutputText("y"));
  };
  EXPECT_EQ(OperatorsOf(*graph("2")), "Mul");
  EXPECT_EQ(OperatorsOf(*graph("3")), "Pow");
}

TEST(Specialize, UnrollsRecurrence) {
  const std::string weights =
      InputText("x", {3, 2, 5}) + InputText("w", {1, 16, 5}) + InputText("r", {1, 16, 4});
  const absl::StatusOr<Graph> graph =
      Specialized(weights + NodeText("LSTM", "x,w,r", "y,h,c", IntText("hidden_size", 4)) +
                  OutputText("y") + OutputText("h") + OutputText("c"));
  EXPECT_EQ(TypesOf(graph), "FLOAT[3,1,2,4] FLOAT[1,2,4] FLOAT[1,2,4]");
  EXPECT_EQ(CountOperators(graph->nodes).at("Gemm"), 4u);  // of all inputs, then of each state
  EXPECT_EQ(TypesOf(Specialized(weights + NodeText("LSTM", "x,w,r", "y", IntText("layout", 1)) +
                                OutputText("y"))),
            "Node 'y' (LSTM): layout 1 is not supported.");
  EXPECT_EQ(TypesOf(Specialized(weights + InputText("b", {}) + NodeText("LSTM", "x,w,r,b", "y") +
                                OutputText("y"))),
            "Node 'y' (LSTM): B (FLOAT[]) does not fit to X (FLOAT[3,2,5]).");
  EXPECT_EQ(TypesOf(Specialized(weights + InputText("h", {2, 4}) +
                                NodeText("LSTM", "x,w,r,,,h", "y") + OutputText("y"))),
            "Node 'y' (LSTM): initial_h (FLOAT[2,4]) does not fit to X (FLOAT[3,2,5]).");
}

TEST(Specialize, LimitsNodes) {
  const absl::StatusOr<Graph> read =
      ReadModel(ModelBytes(InputText("x", {2}) + NodeText("Mean", "x,x,x", "y") + OutputText("y")));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Specialize(*read, {}, {.nodes = 2}).status().message(),
            "Node 'y' (Div): with it the model has more than 2 nodes.");
}

// A product of constants that takes the reference operators minutes.
TEST(Specialize, EndsWhenItIsAbandoned) {
  const std::string weights =
      absl::StrCat(" initializer { name: 'w' data_type: 1 dims: 2048 dims: 2048 raw_data: '",
                   std::string(size_t{2048} * 2048 * 4, 'x'), "' }");
  const absl::StatusOr<Graph> read = ReadModel(
      ModelBytes(InputText("x", {1}) + weights + NodeText("MatMul", "w,w", "p") +
                 NodeText("ReduceSum", "p", "s") + NodeText("Add", "x,s", "y") + OutputText("y")));
  ASSERT_TRUE(read.ok()) << read.status();
  std::stop_source abandoned;
  std::thread leaves([&abandoned] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    abandoned.request_stop();
  });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(Specialize(*read, {}, {.abandoned = abandoned.get_token()}).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  leaves.join();
  EXPECT_EQ(
      ReadModel(ModelBytes(InputText("x", {1}) + NodeText("Relu", "x", "y") + OutputText("y")), {},
                abandoned.get_token())
          .status()
          .code(),
      absl::StatusCode::kCancelled);
}

TEST(Specialize, RefusesTypesThatNothingComputes) {
  EXPECT_EQ(TypesOf(Specialized(InputText("x", {2}, 8) + NodeText("Identity", "x", "y") +
                                OutputText("y"))),
            "Input 'x' is of type STRING, which is not supported.");
  EXPECT_EQ(TypesOf(Specialized(InputText("x", {2}) + NodeText("Cast", "x", "y", IntText("to", 8)) +
                                OutputText("y"))),
            "Node 'y' (Cast): casts to type 8 (STRING), which is not supported.");
}

// docs/models.md names every operator.
TEST(OperatorRows, AreDocumented) {
  std::ifstream file(OPMILL_SOURCE_DIRECTORY "/docs/models.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::set<std::string> words = absl::StrSplit(page, absl::ByAnyChar(" \n,."));
  for (const OperatorRow& row : OperatorRows()) {
    EXPECT_TRUE(words.contains(std::string(row.name))) << row.name;
  }
}

}  // namespace
}  // namespace opmill::onnx
