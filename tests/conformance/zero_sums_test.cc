// The sign of sums that are zero is the same on every device.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/support/programs.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using ::testing::Each;

class ZeroSumsTest : public DeviceTest {
 protected:
  // The result for a row of negative zeros.
  std::vector<uint64_t> ResultBits(const OperatorDesc& desc) {
    const TensorDesc& input = desc.inputs[0];
    const std::vector<uint64_t> zeros(ElementCount(input), BitsOf(input.data_type, -0.0));
    const auto outputs = RunOperator(device(), desc, BytesOfBits(input, zeros));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? BitsIn(OutputsOf(*Validate(desc))[0], outputs->front())
                        : std::vector<uint64_t>();
  }
};

TEST_P(ZeroSumsTest, ArePositive) {
  struct Row {
    uint32_t length;
    std::vector<uint32_t> axes;
  };
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const Row& row : {Row{1, {0}}, Row{4099, {0}}, Row{257, {}}}) {
      const TensorDesc input = {type, {row.length}, {}};
      for (const ReduceFunction function :
           {ReduceFunction::kSum, ReduceFunction::kAverage, ReduceFunction::kL1,
            ReduceFunction::kL2, ReduceFunction::kSumSquare}) {
        const ReduceDesc desc = {function, input, std::nullopt, row.axes};
        EXPECT_THAT(ResultBits(desc), Each(0u)) << ToString(OperatorDesc(desc));
      }
    }
    for (const bool exclusive : {false, true}) {
      CumulativeSummationDesc desc = {.input = {type, {257}, {}}};
      desc.has_exclusive_sum = exclusive;
      EXPECT_THAT(ResultBits(desc), Each(0u)) << ToString(OperatorDesc(desc));
    }
  }
}

TEST_P(ZeroSumsTest, ButProductsHaveTheSignOfTheirFactors) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const uint64_t negative = BitsOf(type, -0.0);
    for (const uint32_t length : {1u, 3u, 257u}) {
      const ReduceDesc desc = {ReduceFunction::kMultiply, {type, {length}, {}}, std::nullopt, {0}};
      EXPECT_THAT(ResultBits(desc), Each(negative)) << ToString(OperatorDesc(desc));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, ZeroSumsTest, ::testing::ValuesIn(TestDevices()));

}  // namespace
}  // namespace opmill
