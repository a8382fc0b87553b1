// Runs every example of DirectML's reference pages on every device.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/worked_examples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/support/programs.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using ::testing::ElementsAreArray;

TensorDesc OutputDesc(const ExampleOutput& output) {
  return {output.is_index ? DataType::kUint32 : DataType::kFloat32, output.sizes, {}};
}

ReduceFunction FunctionOf(const std::string& name) {
  for (uint32_t i = 0; i < kReduceFunctionCount; ++i) {
    const ReduceFunction function = static_cast<ReduceFunction>(i);
    if (absl::AsciiStrToLower(ToString(function)) == name) return function;
  }
  ADD_FAILURE() << "no reduce function " << name;
  return {};
}

// The pages give explicit outputs, and so does every call here.
OperatorDesc DescOf(const WorkedExample& example) {
  const std::string op = example.op;
  const TensorDesc input{DataType::kFloat32, example.sizes, {}};
  const TensorDesc output = OutputDesc(example.outputs[0]);
  const AxisDirection direction = std::string(example.direction) == "increasing"
                                      ? AxisDirection::kIncreasing
                                      : AxisDirection::kDecreasing;
  if (op == "argmin") {
    return ArgReduceDesc{Extreme::kMin, input, output, example.axes, direction};
  }
  if (op == "reduce") return ReduceDesc{FunctionOf(example.function), input, output, example.axes};
  if (op == "hardmax") return HardmaxDesc{input, output, example.axes};
  EXPECT_EQ(op, "top_k");
  return TopKDesc{input,           output,    OutputDesc(example.outputs.at(1)),
                  example.axes[0], example.k, direction};
}

class WorkedExamplesTest : public DeviceTest {};

TEST_P(WorkedExamplesTest, MatchTheirPages) {
  for (const WorkedExample& example : WorkedExamples()) {
    SCOPED_TRACE(absl::StrCat(example.page, ": ", example.title));
    const OperatorDesc desc = DescOf(example);
    const auto outputs = RunOperator(device(), desc, BytesOfNumbers(desc.inputs[0], example.input));
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const std::vector<TensorDesc> descs = OutputsOf(desc);
    ASSERT_EQ(outputs->size(), example.outputs.size());
    for (size_t i = 0; i < descs.size(); ++i) {
      EXPECT_THAT(NumbersIn(descs[i], (*outputs)[i]), ElementsAreArray(example.outputs[i].elements))
          << "output " << i << " of " << ToString(desc);
    }
  }
}

// Ensures that no example is lost when the table is edited.
TEST(WorkedExamples, AreAllOfThePages) {
  std::map<std::string, int> counts;
  for (const WorkedExample& example : WorkedExamples()) {
    if (std::string(example.title).rfind("Example", 0) == 0) ++counts[example.page];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"DML_ARGMIN_OPERATOR_DESC", 3},
                                                {"DML_REDUCE_OPERATOR_DESC", 3},
                                                {"DML_TOP_K1_OPERATOR_DESC", 4},
                                                {"DML_ACTIVATION_HARDMAX1_OPERATOR_DESC", 3}}));
  EXPECT_EQ(WorkedExamples().size(), 3u + 4u + 3u + 4u + 3u);
}

INSTANTIATE_TEST_SUITE_P(On, WorkedExamplesTest, ::testing::ValuesIn(TestDevices()));

}  // namespace
}  // namespace opmill
