#include "kernels/program/program.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

const TensorDesc kTensor = {DataType::kFloat32, {2, 3}, {}};

OperatorDesc SumOf(const TensorDesc& input) {
  return *Validate(ReduceDesc{.function = ReduceFunction::kSum, .input = input, .axes = {1}});
}

// v2 = hardmax of v0; v3 = sum of v2 + v1
Program SumOfTwo() {
  ProgramBuilder builder;
  const uint32_t a = builder.Input(kTensor);
  const uint32_t b = builder.Input(kTensor);
  const uint32_t peaks = builder.Add(HardmaxDesc{.input = kTensor, .axes = {1}}, {a})[0];
  const uint32_t sum = builder.Add(ElementWiseAddDesc{.a = kTensor, .b = kTensor}, {peaks, b})[0];
  return builder.Return(builder.Add(SumOf(kTensor), {sum})[0]).program();
}

void ExpectRefusal(const Program& program, absl::string_view field, absl::string_view sentence) {
  const absl::Status status = Validate(program).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), sentence);
  EXPECT_EQ(FieldOf(status), field);
}

TEST(Program, OfAnOperatorHasItsTextAndHoldsIt) {
  const OperatorDesc desc = SumOf(kTensor);
  const Program program = ProgramOf(desc);
  EXPECT_EQ(ToString(program), ToString(desc));
  ASSERT_NE(OperatorOf(program), nullptr);
  EXPECT_EQ(*OperatorOf(program), desc);
  EXPECT_EQ(RequiredBytes(program, ValueKind::kInput), std::vector<uint64_t>{24});
  EXPECT_EQ(RequiredBytes(program, ValueKind::kOutput), std::vector<uint64_t>{8});
  EXPECT_EQ(*Validate(program), program);
}

TEST(Program, OfOneNodeIsNoOperatorIfItsTensorsAreBoundInAnotherWay) {
  const OperatorDesc add = *Validate(ElementWiseAddDesc{.a = kTensor, .b = kTensor});
  Program swapped = ProgramOf(add);
  std::swap(swapped.nodes[0].inputs[0], swapped.nodes[0].inputs[1]);
  EXPECT_EQ(OperatorOf(swapped), nullptr);
  Program twice = ProgramOf(add);
  twice.values.erase(twice.values.begin());
  twice.nodes[0].inputs = {0, 0};
  twice.nodes[0].outputs = {1};
  EXPECT_EQ(OperatorOf(twice), nullptr);
  EXPECT_EQ(OperatorOf(SumOfTwo()), nullptr);
  EXPECT_EQ(ToString(twice),
            "program(v0=input FLOAT32[2,3], v1=output FLOAT32[2,3]; v1 = "
            "element_wise_add(a=FLOAT32[2,3], b=FLOAT32[2,3], output=FLOAT32[2,3]) of v0, v0)");
}

TEST(Program, IsEqualWhereValuesAndNodesAre) {
  Program other = SumOfTwo();
  EXPECT_EQ(other, SumOfTwo());
  EXPECT_EQ(absl::HashOf(other), absl::HashOf(SumOfTwo()));
  other.values[2].kind = ValueKind::kOutput;
  EXPECT_NE(other, SumOfTwo());
  EXPECT_NE(absl::HashOf(other), absl::HashOf(SumOfTwo()));
  other = SumOfTwo();
  other.nodes[1].inputs = {1, 2};
  EXPECT_NE(other, SumOfTwo());
}

std::shared_ptr<const ConstantData> Constant(size_t size_bytes, uint8_t fill) {
  return ConstantData::Of(std::vector<std::byte>(size_bytes, std::byte{fill}));
}

// SumOfTwo with its second input as a constant.
Program WithConstant(std::shared_ptr<const ConstantData> data) {
  Program program = SumOfTwo();
  program.values[1].kind = ValueKind::kConstant;
  program.values[1].constant = std::move(data);
  return program;
}

TEST(Program, IsEqualWhereTheBytesOfConstantsAre) {
  const Program program = WithConstant(Constant(24, 1));
  EXPECT_EQ(*Validate(program), program);
  EXPECT_EQ(program, WithConstant(Constant(24, 1)));
  EXPECT_EQ(absl::HashOf(program), absl::HashOf(WithConstant(Constant(24, 1))));
  EXPECT_NE(program, WithConstant(Constant(24, 2)));
  EXPECT_NE(absl::HashOf(program), absl::HashOf(WithConstant(Constant(24, 2))));
  EXPECT_NE(program, WithConstant(nullptr));
  EXPECT_EQ(RequiredBytes(program, ValueKind::kInput).size(), 1u);
  EXPECT_EQ(RequiredBytes(program, ValueKind::kConstant), std::vector<uint64_t>{24});
  EXPECT_THAT(ToString(program), ::testing::HasSubstr("v1=constant FLOAT32[2,3]"));
}

TEST(ConstantData, IsAlignedAndFollowedByZeros) {
  for (const size_t size : {0, 1, 63, 64, 65}) {
    const auto data = Constant(size, 7);
    ASSERT_EQ(data->size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data->data()) % ConstantData::kAlignment, 0u);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(data->data()[i], std::byte{7});
    for (size_t i = size; i % 64 != 0; ++i) EXPECT_EQ(data->data()[i], std::byte{0});
  }
}

TEST(ValidateProgram, RefusesConstantsOfTheWrongSizeAndWritesToThem) {
  ExpectRefusal(WithConstant(nullptr), "values[1].constant",
                "values[1].constant has 0 bytes; FLOAT32[2,3] takes 24.");
  ExpectRefusal(WithConstant(Constant(25, 1)), "values[1].constant",
                "values[1].constant has 25 bytes; FLOAT32[2,3] takes 24.");
  Program program = WithConstant(Constant(24, 1));
  program.values[1].kind = ValueKind::kInput;
  ExpectRefusal(program, "values[1].constant",
                "values[1].constant is given, but values[1] is no constant.");
  program = WithConstant(Constant(24, 1));
  program.nodes[0].outputs = {1};
  ExpectRefusal(program, "nodes[0].outputs[0]",
                "nodes[0].outputs[0] writes values[1], which is a constant.");
}

TEST(ValidateProgram, InfersOutputsAndTakesPackedStridesInBothForms) {
  Program program = SumOfTwo();
  program.nodes[0].desc.outputs[0] = std::nullopt;
  program.values[0].tensor.strides = {3, 1};
  const auto validated = Validate(program);
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_EQ(validated->nodes[0].desc.outputs[0], kTensor);
}

TEST(ValidateProgram, RefusesWhatIsNotWrittenOnceBeforeItIsRead) {
  Program program = SumOfTwo();
  std::swap(program.nodes[0], program.nodes[1]);
  ExpectRefusal(program, "nodes[0].inputs[0]",
                "nodes[0].inputs[0] reads values[2], which no earlier node writes.");
  program = SumOfTwo();
  program.nodes[1].inputs = {3, 1};
  ExpectRefusal(program, "nodes[1].inputs[0]",
                "nodes[1].inputs[0] reads values[3], which no earlier node writes.");
  program = SumOfTwo();
  program.nodes[1].outputs = {2};
  ExpectRefusal(program, "nodes[1].outputs[0]",
                "nodes[1].outputs[0] writes values[2], which nodes[0] writes.");
  program = SumOfTwo();
  program.nodes[0].outputs = {1};
  ExpectRefusal(program, "nodes[0].outputs[0]",
                "nodes[0].outputs[0] writes values[1], which is an input.");
  program = SumOfTwo();
  program.values.push_back({ValueKind::kOutput, kTensor});
  ExpectRefusal(program, "values[5]", "values[5] is an output, but no node writes it.");
  program.values[5].kind = ValueKind::kIntermediate;
  ExpectRefusal(program, "values[5]", "values[5] is an intermediate, but no node writes it.");
}

TEST(ValidateProgram, RefusesBindingsThatDoNotFit) {
  Program program = SumOfTwo();
  program.nodes[1].inputs = {2};
  ExpectRefusal(program, "nodes[1].inputs",
                "nodes[1].inputs names 1 values, but element_wise_add has 2 inputs.");
  program = SumOfTwo();
  program.nodes[2].outputs = {};
  ExpectRefusal(program, "nodes[2].outputs",
                "nodes[2].outputs names 0 values, but reduce SUM has 1 outputs.");
  program = SumOfTwo();
  program.nodes[1].inputs[1] = 9;
  ExpectRefusal(program, "nodes[1].inputs[1]",
                "nodes[1].inputs[1] (9) is not below the number of values (5).");
  program = SumOfTwo();
  program.values[1].tensor.sizes = {5};
  ExpectRefusal(
      program, "nodes[1].inputs[1]",
      "nodes[1].inputs[1] is FLOAT32[2,3] from element 0 on, but values[1] is FLOAT32[5].");
  program = SumOfTwo();
  program.values[2].tensor.strides = {4, 1};
  ExpectRefusal(
      program, "nodes[0].outputs[0]",
      "nodes[0].outputs[0] is FLOAT32[2,3], but values[2] is FLOAT32[2,3] strides [4,1].");
}

TEST(ValidateProgram, TakesViewsThatLieWithinTheirValues) {
  Program program = SumOfTwo();
  program.values[1].tensor.sizes = {8};
  EXPECT_TRUE(Validate(program).ok());
  program.nodes[1].inputs[1] = {1, 2};
  EXPECT_TRUE(Validate(program).ok());
  EXPECT_THAT(ToString(program), ::testing::HasSubstr(" of v2, v1+2;"));
  EXPECT_EQ(OperatorOf(program), nullptr);
  program.nodes[1].inputs[1] = {1, 3};
  ExpectRefusal(
      program, "nodes[1].inputs[1]",
      "nodes[1].inputs[1] is FLOAT32[2,3] from element 3 on, but values[1] is FLOAT32[8].");
  program.nodes[1].inputs[1] = {1, ~uint64_t{0}};
  EXPECT_FALSE(Validate(program).ok());
  program.nodes[1].inputs[1] = {1, 0};
  program.values[1].tensor.data_type = DataType::kInt32;
  ExpectRefusal(program, "nodes[1].inputs[1]",
                "nodes[1].inputs[1] is FLOAT32[2,3] from element 0 on, but values[1] is INT32[8].");
}

TEST(ValidateProgram, RefusesInvalidPartsByTheirPaths) {
  Program program = SumOfTwo();
  program.values[1].tensor.sizes[1] = 0;
  EXPECT_EQ(FieldOf(Validate(program).status()), "values[1].tensor.sizes[1]");
  program = SumOfTwo();
  program.nodes[2].desc.attributes[1] = std::vector<uint32_t>{7};
  ExpectRefusal(program, "nodes[2].desc.axes[0]",
                "nodes[2]: axes[0] (7) is not below the dimension count (2) of input.");
  ExpectRefusal({}, "values", "values has no output.");
}

}  // namespace
}  // namespace opmill
