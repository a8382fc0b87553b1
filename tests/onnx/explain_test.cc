#include "kernels/onnx/explain.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/read_model.h"
#include "tests/onnx/model_text.h"

namespace opmill::onnx {
namespace {

using testing::ElementsAre;

std::string ToText(const ExplainedNode& node) {
  static constexpr absl::string_view kFates[] = {"unused", "constant", "view", "computed"};
  const absl::string_view fate = kFates[static_cast<size_t>(node.fate)];
  return absl::StrCat(node.op, " ", fate, node.operators.empty() ? "" : " ",
                      absl::StrJoin(node.operators, ","));
}

// "Relu computed 0": each node, its fate, and the operators of the program that compute it.
std::vector<std::string> FatesOf(const std::string& text, int64_t opset = 17,
                                 const InputBindings& bindings = {}) {
  const absl::StatusOr<Graph> graph = ReadModel(ModelBytes(text, opset));
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Explanation> explained = Explain(*graph, bindings);
  if (!explained.ok()) return {std::string(explained.status().message())};
  std::vector<std::string> fates;
  for (const ExplainedNode& node : explained->nodes) fates.push_back(ToText(node));
  return fates;
}

std::string FloatsText(absl::string_view name, const Sizes& sizes) {
  const std::string values(4 * ElementCount(sizes).value(), 'a');
  std::string text = absl::StrCat(" initializer { name: '", name, "' data_type: 1");
  for (const int64_t size : sizes) absl::StrAppend(&text, " dims: ", size);
  return absl::StrCat(text, " raw_data: '", values, "' }");
}

TEST(Explain, ElementWiseOperatorsAreOneChain) {
  EXPECT_THAT(FatesOf(InputText("x", {2, 3}) + NodeText("Exp", "x", "a") +
                      NodeText("Neg", "a", "b") + NodeText("Relu", "b", "y") + OutputText("y")),
              ElementsAre("Exp computed 0", "Neg computed 0", "Relu computed 0"));
}

TEST(Explain, CountsWhatIsNotJoined) {
  const absl::StatusOr<Graph> graph =
      ReadModel(ModelBytes(InputText("x", {2, 3}) + NodeText("Exp", "x", "a") +
                           NodeText("Neg", "a", "y") + OutputText("y")));
  const absl::StatusOr<Explanation> explained = Explain(*graph, {});
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_EQ(explained->unfused_operators, 2u);
  EXPECT_EQ(explained->unfused_bytes, 2u * 2 * 24);
}

TEST(Explain, MovesAreViewsAndShapesAreConstant) {
  EXPECT_THAT(FatesOf(InputText("x", {2, 3}) + NodeText("Identity", "x", "i") +
                      NodeText("Transpose", "i", "t") + NodeText("Shape", "x", "s") +
                      NodeText("Reshape", "t,s", "r") + NodeText("Relu", "t", "y") +
                      NodeText("Relu", "r", "z") + OutputText("y") + OutputText("z")),
              ElementsAre("Identity view", "Transpose view", "Shape constant", "Reshape computed 0",
                          "Relu computed 1", "Relu computed 2"));
}

TEST(Explain, WhatNothingReadsIsUnused) {
  EXPECT_THAT(FatesOf(InputText("x", {4}) + NodeText("Exp", "x", "a") + NodeText("Neg", "a", "b") +
                      NodeText("Relu", "x", "y") + OutputText("y")),
              ElementsAre("Exp unused", "Neg unused", "Relu computed 0"));
}

TEST(Explain, ScalesArePartOfAConv) {
  EXPECT_THAT(
      FatesOf(InputText("x", {1, 3, 8, 8}) + FloatsText("w", {4, 3, 3, 3}) + FloatsText("c", {4}) +
              NodeText("Conv", "x,w", "a") + NodeText("BatchNormalization", "a,c,c,c,c", "b") +
              NodeText("Relu", "b", "y") + OutputText("y")),
      ElementsAre("Conv computed 0", "BatchNormalization computed 0", "Relu computed 1"));
}

TEST(Explain, ARowOfATableIsGatheredFirst) {
  EXPECT_THAT(
      FatesOf(InputText("i", {2}, 7) +
              absl::StrCat(" initializer { name: 't' data_type: 3 dims: [20000, 4] raw_data: '",
                           std::string(80000, 'a'), "' }") +
              FloatsText("scale", {1, 4}) + NodeText("Cast", "t", "f", IntText("to", 1)) +
              NodeText("Mul", "f,scale", "m") + NodeText("Gather", "m,i", "y") + OutputText("y")),
      ElementsAre("Cast computed 1", "Mul computed 1", "Gather computed 0"));
}

TEST(Explain, AProductOfAOneHotEncodingIsAGather) {
  EXPECT_THAT(
      FatesOf(InputText("x", {5, 1}, 7) + IntegersText("n", {0, 1, 2}) + FloatsText("t", {3, 2}) +
              NodeText("Equal", "x,n", "e") + NodeText("Cast", "e", "c", IntText("to", 1)) +
              NodeText("MatMul", "c,t", "p") + NodeText("Relu", "p", "y") + OutputText("y")),
      ElementsAre("Equal computed 0,1,2", "Cast computed 3", "MatMul computed 3",
                  "Relu computed 3"));
}

TEST(Explain, AnUnrolledLoopIsSeveralOperators) {
  const std::vector<std::string> fates =
      FatesOf(InputText("x", {3, 1, 2}) + FloatsText("w", {1, 4, 2}) + FloatsText("r", {1, 4, 1}) +
              NodeText("LSTM", "x,w,r", "y", " attribute { name: 'hidden_size' type: 2 i: 1 }") +
              OutputText("y"));
  ASSERT_EQ(fates.size(), 1u);
  EXPECT_THAT(fates[0], testing::StartsWith("LSTM computed 0,1,2,"));
}

TEST(Explain, ABranchIsTakenOrUnused) {
  for (const bool condition : {false, true}) {
    const InputBindings bindings = {
        .values = {{"c", TensorOf(ElementType::kBool, {}, std::vector<uint8_t>{condition})}}};
    EXPECT_THAT(FatesOf(IfText(), 17, bindings),
                ElementsAre("If constant", condition ? "Abs unused" : "Abs computed 0",
                            condition ? "Neg computed 0" : "Neg unused"));
  }
}

TEST(Explain, RefusesWhatHasNoProgram) {
  EXPECT_THAT(FatesOf(InputText("x", {2}) + NodeText("NonZero", "x", "y") + OutputText("y")),
              ElementsAre("Node 'y' (NonZero): input 0 ('x') must be constant."));
}

}  // namespace
}  // namespace opmill::onnx
