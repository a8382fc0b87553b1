#include "kernels/onnx/lower_graph.h"

#include <cstring>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/onnx/evaluate.h"
#include "tests/onnx/model_text.h"

namespace opmill::onnx {
namespace {

using testing::ElementsAre;

absl::StatusOr<LoweredGraph> Lowered(absl::string_view graph) {
  const absl::StatusOr<Graph> specialized = Specialized(graph);
  if (!specialized.ok()) return specialized.status();
  return LowerGraph(*specialized);
}

// The nodes: "identity of v0+3 FLOAT32[2] strides [2]".
std::vector<std::string> NodesOf(const absl::StatusOr<LoweredGraph>& graph) {
  if (!graph.ok()) return {std::string(graph.status().message())};
  std::vector<std::string> nodes;
  for (const ProgramNode& node : graph->program.nodes) {
    std::string& text = nodes.emplace_back(OperatorName(node.desc));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? " of v" : ", v", node.inputs[i].value);
      if (node.inputs[i].first_element != 0) {
        absl::StrAppend(&text, "+", node.inputs[i].first_element);
      }
      absl::StrAppend(&text, " ", ToString(node.desc.inputs[i]));
    }
  }
  return nodes;
}

TEST(LowerGraph, BroadcastsWithStridesOfZero) {
  EXPECT_THAT(NodesOf(Lowered(InputText("x", {2, 3}) + InputText("b", {3}) +
                              NodeText("Add", "x,b", "y") + OutputText("y"))),
              ElementsAre("element_wise_add of v0 FLOAT32[2,3], v1 FLOAT32[2,3] strides [0,1]"));
}

TEST(LowerGraph, MovesAreViews) {
  const std::string head = InputText("x", {2, 3, 4}) + IntegersText("b", {1}) +
                           IntegersText("e", {3}) + IntegersText("a", {2});
  EXPECT_THAT(NodesOf(Lowered(head + NodeText("Transpose", "x", "t", IntsText("perm", {1, 0, 2})) +
                              NodeText("Slice", "t,b,e,a", "s") + NodeText("Relu", "s", "y") +
                              OutputText("y"))),
              ElementsAre("relu of v0+1 FLOAT32[3,2,2] strides [4,12,1]"));
  EXPECT_THAT(NodesOf(Lowered(head + NodeText("Split", "x", "p,q", IntText("axis", 0)) +
                              NodeText("Squeeze", "q", "s") + NodeText("Unsqueeze", "s,a", "u") +
                              NodeText("Flatten", "u", "f") + NodeText("Relu", "f", "y") +
                              OutputText("y"))),
              ElementsAre("relu of v0+12 FLOAT32[3,4]"));
}

TEST(LowerGraph, NumbersChangeBeforeTheyAreTransposed) {
  const std::string head = InputText("x", {2, 3}) + InputText("w", {3, 4}) +
                           " initializer { name: 's' data_type: 1 dims: [1, 1, 1] float_data: 2 }" +
                           IntegersText("a", {0}) + NodeText("MatMul", "x,w", "p");
  EXPECT_THAT(NodesOf(Lowered(head + NodeText("Transpose", "p", "t") +
                              NodeText("Unsqueeze", "t,a", "u") + NodeText("Mul", "s,u", "m") +
                              NodeText("MatMul", "m,x", "y") + OutputText("y"))),
              ElementsAre("gemm of v0 FLOAT32[2,3], v1 FLOAT32[3,4]",
                          "multiply of v2 FLOAT32[2,4] strides [0,0], v3 FLOAT32[2,4]",
                          "gemm of v4 FLOAT32[1,4,2] strides [0,1,4], v0 FLOAT32[1,2,3]"));
  EXPECT_THAT(NodesOf(Lowered(head + NodeText("Relu", "p", "r") + NodeText("Transpose", "p", "t") +
                              NodeText("Transpose", "r", "u") + NodeText("Add", "t,u", "m") +
                              NodeText("MatMul", "m,x", "y") + OutputText("y"))),
              ElementsAre("gemm of v0 FLOAT32[2,3], v1 FLOAT32[3,4]", "relu of v2 FLOAT32[2,4]",
                          "element_wise_add of v2 FLOAT32[2,4], v3 FLOAT32[2,4]",
                          "gemm of v4 FLOAT32[4,2] strides [1,4], v0 FLOAT32[2,3]"));
  EXPECT_THAT(NodesOf(Lowered(InputText("x", {2, 3}) + NodeText("Transpose", "x", "t") +
                              NodeText("Relu", "t", "y") + OutputText("y"))),
              ElementsAre("relu of v0 FLOAT32[3,2] strides [1,3]"));
}

TEST(LowerGraph, CopiesWhereStridesDoNotSuffice) {
  EXPECT_THAT(NodesOf(Lowered(InputText("x", {2, 3}) + IntegersText("s", {6}) +
                              NodeText("Transpose", "x", "t") + NodeText("Reshape", "t,s", "r") +
                              NodeText("Relu", "r", "y") + OutputText("y"))),
              ElementsAre("identity of v0 FLOAT32[3,2] strides [1,3]", "relu of v1 FLOAT32[6]"));
}

TEST(LowerGraph, OutputsAreWholeValuesThatNodesCompute) {
  const std::string x = InputText("x", {2, 3});
  EXPECT_THAT(NodesOf(Lowered(x + NodeText("Transpose", "x", "y") + OutputText("y"))),
              ElementsAre("identity of v0 FLOAT32[3,2] strides [1,3]"));
  EXPECT_THAT(NodesOf(Lowered(x + NodeText("Relu", "x", "y") + OutputText("y") +
                              NodeText("Identity", "y", "z") + OutputText("z"))),
              ElementsAre("relu of v0 FLOAT32[2,3]", "identity of v1 FLOAT32[2,3]"));
  const absl::StatusOr<LoweredGraph> reshaped =
      Lowered(x + NodeText("Relu", "x", "r") + NodeText("Flatten", "r", "y", IntText("axis", 0)) +
              OutputText("y"));
  EXPECT_THAT(NodesOf(reshaped), ElementsAre("relu of v0 FLOAT32[2,3]"));
  EXPECT_EQ(ToString(reshaped->outputs[0]), "FLOAT[1,6]");
}

TEST(LowerGraph, NamesOperatorsWithoutAKernel) {
  EXPECT_THAT(NodesOf(Lowered(InputText("x", {2}) + NodeText("ScatterND", "x,x,x", "a") +
                              NodeText("ScatterND", "a,x,x", "b") + OutputText("b"))),
              ElementsAre("Devices have no kernel for ScatterND (2 nodes, first 'a')."));
  EXPECT_THAT(NodesOf(Lowered(InputText("x", {2}) + NodeText("Cast", "x", "d", IntText("to", 11)) +
                              OutputText("d"))),
              ElementsAre(testing::HasSubstr("Node 'd' (Cast): cast does not take it: ")));
}

TEST(ReshapedStrides, ExistWhereDimensionsAreWalkedAsOne) {
  const auto strides = [](const TensorDesc& tensor, const std::vector<uint32_t>& sizes) {
    return ReshapedStrides(tensor, sizes);
  };
  using Strides = std::vector<uint32_t>;
  const TensorDesc rows = {DataType::kFloat32, {4, 6}, {10, 1}};
  EXPECT_EQ(strides(rows, {2, 2, 3, 2}), (Strides{20, 10, 2, 1}));
  EXPECT_EQ(strides(rows, {4, 1, 6}), (Strides{10, 0, 1}));
  EXPECT_EQ(strides(rows, {24}), std::nullopt);
  const TensorDesc broadcast = {DataType::kFloat32, {3, 2}, {0, 0}};
  EXPECT_EQ(strides(broadcast, {6}), (Strides{0}));
  const TensorDesc packed = {DataType::kFloat32, {2, 3, 4}, {}};
  EXPECT_EQ(strides(packed, {4, 6}), (Strides{6, 1}));
}

TEST(Compute, RunsViewsWithTheReferenceOperators) {
  const absl::StatusOr<LoweredGraph> graph =
      Lowered(InputText("x", {2, 3}) + IntegersText("s", {1, 6}) + NodeText("Transpose", "x", "t") +
              NodeText("Reshape", "t,s", "r") + NodeText("Neg", "r", "y") + OutputText("y"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<float> x(7);
  std::iota(x.begin(), x.end(), 0.0f);
  std::vector<std::string> memory = {std::string(reinterpret_cast<const char*>(x.data()), 28)};
  ASSERT_TRUE(Compute(graph->program, memory).ok());
  const std::string& y = memory.back();
  std::vector<float> values(6);
  std::memcpy(values.data(), y.data(), 24);
  EXPECT_THAT(values, ElementsAre(0, -3, -1, -4, -2, -5));
}

}  // namespace
}  // namespace opmill::onnx
