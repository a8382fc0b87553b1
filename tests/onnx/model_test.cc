#include "kernels/onnx/model.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/model_text.h"

namespace opmill::onnx {
namespace {

// Of FLOAT, with a first dimension of any size.
std::string OpenText(const std::string& kind, const std::string& name) {
  return " " + kind + " { name: '" + name +
         "' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' } dim { dim_value: 2 } "
         "} } "
         "} }";
}

std::shared_ptr<const Model> MakeModel(const std::string& nodes, const ModelLimits& limits = {}) {
  const std::string text = OpenText("input", "x") + nodes + OpenText("output", "y");
  auto model = Model::Make(ReadModel(ModelBytes(text)).value(), limits);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::shared_ptr<const ModelProgram> ForRows(const Model& model, int64_t rows) {
  auto program = model.ProgramFor({.sizes = {{"x", {rows, 2}}}});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

const std::string& TwoNodes() {
  static const std::string* const text = new std::string(
      " initializer { name: 'c' data_type: 1 dims: 2 float_data: 3 float_data: 4 }" +
      NodeText("Add", "x,c", "a") + NodeText("Relu", "a", "y"));
  return *text;
}

TEST(Model, KeepsTheProgramsThatWereUsedLast) {
  const auto model = MakeModel(TwoNodes(), {.programs = 2});
  const auto one = ForRows(*model, 1);
  const auto two = ForRows(*model, 2);
  EXPECT_EQ(ForRows(*model, 1), one);
  ForRows(*model, 3);
  EXPECT_EQ(ForRows(*model, 1), one);
  EXPECT_NE(ForRows(*model, 2), two);
}

TEST(Model, ProgramsAreFusedAndShareConstants) {
  const auto model = MakeModel(TwoNodes());
  const auto constant_of = [&](int64_t rows) {
    const Program& program = ForRows(*model, rows)->program;
    EXPECT_EQ(program.nodes.size(), 1u);
    for (const ProgramValue& value : program.values) {
      if (value.kind == ValueKind::kConstant) return value.constant;
    }
    return std::shared_ptr<const ConstantData>();
  };
  EXPECT_NE(constant_of(1), nullptr);
  EXPECT_EQ(constant_of(1), constant_of(5));
}

TEST(Model, ProgramsShareConstantsThatAreComputed) {
  const auto model =
      MakeModel(" initializer { name: 'c' data_type: 1 dims: 2 float_data: 3 float_data: 4 }" +
                NodeText("Mul", "c,c", "d") + NodeText("Add", "x,d", "y"));
  const auto constants_of = [&](int64_t rows) {
    std::vector<const ConstantData*> constants;
    for (const ProgramValue& value : ForRows(*model, rows)->program.values) {
      if (value.constant != nullptr) constants.push_back(value.constant.get());
    }
    EXPECT_EQ(constants.size(), 1u);
    return constants;
  };
  const uint64_t bytes = (constants_of(1), model->memory_bytes());
  EXPECT_EQ(constants_of(2), constants_of(1));
  EXPECT_EQ(model->memory_bytes(), bytes);
}

TEST(Model, SaysWhatTheFileSays) {
  const auto model = MakeModel(TwoNodes());
  ASSERT_EQ(model->inputs().size(), 1u);
  EXPECT_THAT(model->inputs()[0].sizes, testing::ElementsAre(-1, 2));
  EXPECT_FALSE(model->inputs()[0].is_form);
  EXPECT_EQ(model->outputs()[0].name, "y");
  const auto untyped = Model::Make(
      ReadModel(ModelBytes(InputText("x", {2}) + NodeText("Relu", "x", "y") + OutputText("y")))
          .value());
  EXPECT_EQ(
      untyped.status().message(),
      "The file does not say the type and the number of dimensions of 'y', an input or output.");
}

std::string RefusalOf(const std::string& text) {
  return std::string(Model::Make(ReadModel(ModelBytes(text)).value()).status().message());
}

TEST(Model, RefusesTypesThatNoTensorHas) {
  std::string bfloat16 = OpenText("output", "y");
  bfloat16.replace(bfloat16.find("elem_type: 1"), 12, "elem_type: 16");
  EXPECT_EQ(RefusalOf(OpenText("input", "x") + NodeText("Relu", "x", "y") + bfloat16),
            "The type of 'y', an input or output, is an unknown type, which is not supported.");
}

TEST(Model, RefusesUnknownOperatorsAlsoIfNoTriedSizeFits) {
  EXPECT_EQ(RefusalOf(OpenText("input", "x") +
                      " initializer { name: 'c' data_type: 1 dims: 3 float_data: [1, 2, 3] }" +
                      NodeText("Add", "x,c", "a") + NodeText("Relu2", "a", "y") +
                      OpenText("output", "y")),
            "Node 'y' (Relu2): the operator is not supported.");
}

// The rows from 100 on.
TEST(Model, IsServedIfSomeSizeFits) {
  const auto model =
      MakeModel(IntegersText("start", {100}) + IntegersText("end", {1000}) +
                IntegersText("axis", {0}) + NodeText("Slice", "x,start,end,axis", "y"));
  EXPECT_EQ(ForRows(*model, 120)->outputs[0].sizes[0], 20);
  EXPECT_EQ(model->ProgramFor({.sizes = {{"x", {99, 2}}}}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Model, TakesTheMemoryOfItsConstantsFromABudget) {
  const auto budget = std::make_shared<ByteBudget>(1 << 20, "models");
  {
    const auto model = MakeModel(TwoNodes(), {.budget = budget});
    // The constant of the graph, and that of its programs.
    EXPECT_EQ(model->memory_bytes(), 2 * 2 * sizeof(float));
    EXPECT_EQ(budget->used(), model->memory_bytes());
    ForRows(*model, 3);
    EXPECT_EQ(budget->used(), 2 * 2 * sizeof(float));
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(Model, IsRefusedIfItsConstantsDoNotFit) {
  const auto budget = std::make_shared<ByteBudget>(15, "models");
  const std::string text = OpenText("input", "x") + TwoNodes() + OpenText("output", "y");
  const auto model = Model::Make(ReadModel(ModelBytes(text)).value(), {.budget = budget});
  EXPECT_EQ(model.status().message(),
            "There is no room for 8 bytes of a model: 8 of 15 bytes (models) are in use.");
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace opmill::onnx
