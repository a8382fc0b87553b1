#include "kernels/descriptor/operator_desc.h"

#include "absl/container/flat_hash_map.h"
#include "gtest/gtest.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill {
namespace {

const TensorDesc kInput = {DataType::kFloat32, {2, 3}, {4, 1}};
const TensorDesc kRows = {DataType::kFloat32, {2, 1}, {}};
const TensorDesc kIndices = {DataType::kUint32, {2, 1}, {}};

const ArgReduceDesc kArgMin = {Extreme::kMin, kInput, kIndices, {1}, AxisDirection::kDecreasing};
const ReduceDesc kReduce = {ReduceFunction::kLogSumExp, kInput, std::nullopt, {1, 0}};
const TopKDesc kTopK = {kInput, kRows, kIndices, 1, 1, AxisDirection::kIncreasing};
const HardmaxDesc kHardmax = {kInput, std::nullopt, {0}};

TEST(OperatorDesc, WritesOneLineThatRepeatsTheCall) {
  EXPECT_EQ(ToString(OperatorDesc(kArgMin)),
            "argmin(input=FLOAT32[2,3] strides [4,1], output=UINT32[2,1], axes=[1], "
            "axis_direction=DECREASING)");
  EXPECT_EQ(ToString(OperatorDesc(kReduce)),
            "reduce(function=LOG_SUM_EXP, input=FLOAT32[2,3] strides [4,1], axes=[1,0])");
  EXPECT_EQ(ToString(OperatorDesc(kTopK)),
            "top_k(input=FLOAT32[2,3] strides [4,1], output_values=FLOAT32[2,1], "
            "output_indices=UINT32[2,1], axis=1, k=1, axis_direction=INCREASING)");
  EXPECT_EQ(ToString(OperatorDesc(kHardmax)),
            "hardmax(input=FLOAT32[2,3] strides [4,1], axes=[0])");
}

TEST(OperatorDesc, NamesOperatorsAndFunctionsInDirectMlsOrder) {
  ArgReduceDesc argmax = kArgMin;
  argmax.extreme = Extreme::kMax;
  EXPECT_EQ(OperatorName(argmax), "argmax");
  const char* names[kReduceFunctionCount] = {"ARGMAX", "ARGMIN",   "AVERAGE",     "L1",
                                             "L2",     "LOG_SUM",  "LOG_SUM_EXP", "MAX",
                                             "MIN",    "MULTIPLY", "SUM",         "SUM_SQUARE"};
  for (uint32_t i = 0; i < kReduceFunctionCount; ++i) {
    EXPECT_EQ(ToString(static_cast<ReduceFunction>(i)), names[i]);
  }
  EXPECT_EQ(ToString(static_cast<ReduceFunction>(kReduceFunctionCount)), "UNKNOWN");
}

TEST(OperatorDesc, KnowsItsTensors) {
  EXPECT_EQ(OperatorDesc(kTopK).inputs[0], kInput);
  EXPECT_EQ(OutputsOf(OperatorDesc(kTopK)), (std::vector<TensorDesc>{kRows, kIndices}));
  EXPECT_EQ(OutputsOf(OperatorDesc(kArgMin)), std::vector<TensorDesc>{kIndices});
}

TEST(OperatorDesc, IsItsOwnKey) {
  absl::flat_hash_map<OperatorDesc, int> numbers;
  HardmaxDesc other_axis = kHardmax;
  other_axis.axes = {1};
  HardmaxDesc with_output = kHardmax;
  with_output.output = kInput;
  const OperatorDesc keys[] = {kArgMin, kReduce, kTopK, kHardmax, other_axis, with_output};
  for (const OperatorDesc& key : keys) numbers.emplace(key, static_cast<int>(numbers.size()));
  ASSERT_EQ(numbers.size(), std::size(keys));
  for (size_t i = 0; i < std::size(keys); ++i) EXPECT_EQ(numbers.at(keys[i]), static_cast<int>(i));
}

}  // namespace
}  // namespace opmill
