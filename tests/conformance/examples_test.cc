// Every worked example of DirectML's reference pages, on every device.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using ::testing::ElementsAreArray;

using Sizes = std::vector<uint32_t>;
using Numbers = std::vector<double>;

TensorDesc Packed(DataType type, Sizes sizes) { return {type, std::move(sizes), {}}; }

class PageTest : public DeviceTest {
 protected:
  // The pages give FLOAT32 inputs and spell the outputs out; so does every call here.
  void ExpectExample(const OperatorDesc& desc, const Numbers& input,
                     const std::vector<Numbers>& expected) {
    const auto outputs = RunOperator(device(), desc, BytesOfNumbers(InputOf(desc), input));
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const std::vector<TensorDesc> descs = OutputsOf(desc);
    ASSERT_EQ(outputs->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_THAT(NumbersIn(descs[i], (*outputs)[i]), ElementsAreArray(expected[i]))
          << "output " << i << " of " << ToString(desc);
    }
  }
};

class ArgminPage : public PageTest {
 protected:
  void ExpectArgmin(Sizes sizes, Sizes axes, AxisDirection direction, Sizes output_sizes,
                    const Numbers& input, const Numbers& expected) {
    ExpectExample(ArgReduceDesc{Extreme::kMin, Packed(DataType::kFloat32, sizes),
                                Packed(DataType::kUint32, output_sizes), axes, direction},
                  input, {expected});
  }
  const Numbers kInput = {1, 2, 3,  //
                          3, 0, 4,  //
                          2, 5, 2};
};

TEST_P(ArgminPage, Example1AppliesToColumns) {
  ExpectArgmin({3, 3}, {0}, AxisDirection::kIncreasing, {1, 3}, kInput, {0, 1, 2});
}

TEST_P(ArgminPage, Example2AppliesToRows) {
  ExpectArgmin({3, 3}, {1}, AxisDirection::kIncreasing, {3, 1}, kInput, {0, 1, 0});
}

TEST_P(ArgminPage, Example3AppliesToAllAxes) {
  ExpectArgmin({3, 3}, {0, 1}, AxisDirection::kIncreasing, {1, 1}, kInput, {4});
}

TEST_P(ArgminPage, IncreasingGivesTheFirstOfEqualMinima) {
  ExpectArgmin({5}, {0}, AxisDirection::kIncreasing, {1}, {1, 2, 3, 2, 1}, {0});
}

TEST_P(ArgminPage, DecreasingGivesTheLastOfEqualMinima) {
  ExpectArgmin({5}, {0}, AxisDirection::kDecreasing, {1}, {1, 2, 3, 2, 1}, {4});
}

TEST_P(ArgminPage, IncreasingIsReduceWithArgmin) {
  ExpectExample(ReduceDesc{ReduceFunction::kArgMin,
                           Packed(DataType::kFloat32, {3, 3}),
                           Packed(DataType::kUint32, {3, 1}),
                           {1}},
                kInput, {{0, 1, 0}});
}

class ReducePage : public PageTest {
 protected:
  void ExpectSum(Sizes axes, Sizes output_sizes, const Numbers& expected) {
    ExpectExample(ReduceDesc{ReduceFunction::kSum, Packed(DataType::kFloat32, {3, 3}),
                             Packed(DataType::kFloat32, output_sizes), axes},
                  {1, 2, 3,  //
                   3, 0, 4,  //
                   2, 4, 2},
                  {expected});
  }
};

TEST_P(ReducePage, Example1SumsColumns) { ExpectSum({0}, {1, 3}, {6, 6, 9}); }

TEST_P(ReducePage, Example2SumsRows) { ExpectSum({1}, {3, 1}, {6, 7, 8}); }

TEST_P(ReducePage, Example3SumsAllAxes) { ExpectSum({0, 1}, {1, 1}, {21}); }

class TopK1Page : public PageTest {
 protected:
  void ExpectTopK(const Numbers& input, uint32_t axis, uint32_t k, AxisDirection direction,
                  Sizes output_sizes, const Numbers& values, const Numbers& indices) {
    ExpectExample(
        TopKDesc{Packed(DataType::kFloat32, {1, 1, 3, 4}), Packed(DataType::kFloat32, output_sizes),
                 Packed(DataType::kUint32, output_sizes), axis, k, direction},
        input, {values, indices});
  }
  const Numbers kDistinct = {0, 1, 10, 11,  //
                             3, 2, 9,  8,   //
                             4, 5, 6,  7};
  const Numbers kTied = {1, 2, 2, 3,  //
                         3, 4, 5, 5,  //
                         6, 6, 6, 6};
};

TEST_P(TopK1Page, Example1TakesTheLargestOfEachRow) {
  ExpectTopK(kDistinct, 3, 2, AxisDirection::kDecreasing, {1, 1, 3, 2},
             {11, 10,  //
              9, 8,    //
              7, 6},
             {3, 2,  //
              2, 3,  //
              3, 2});
}

TEST_P(TopK1Page, Example2UsesADifferentAxis) {
  ExpectTopK(kDistinct, 2, 2, AxisDirection::kDecreasing, {1, 1, 2, 4},
             {4, 5, 10, 11,  //
              3, 2, 9, 8},
             {2, 2, 0, 0,  //
              1, 1, 1, 1});
}

TEST_P(TopK1Page, Example3OrdersTiedValuesByIndex) {
  ExpectTopK(kTied, 3, 3, AxisDirection::kDecreasing, {1, 1, 3, 3},
             {3, 2, 2,  //
              5, 5, 4,  //
              6, 6, 6},
             {3, 1, 2,  //
              2, 3, 1,  //
              0, 1, 2});
}

TEST_P(TopK1Page, Example4TakesTheSmallestInIncreasingOrder) {
  ExpectTopK(kTied, 3, 3, AxisDirection::kIncreasing, {1, 1, 3, 3},
             {1, 2, 2,  //
              3, 4, 5,  //
              6, 6, 6},
             {0, 1, 2,  //
              0, 1, 2,  //
              0, 1, 2});
}

class Hardmax1Page : public PageTest {
 protected:
  void ExpectHardmax(Sizes axes, const Numbers& expected) {
    ExpectExample(HardmaxDesc{Packed(DataType::kFloat32, {2, 2, 2}),
                              Packed(DataType::kFloat32, {2, 2, 2}), axes},
                  {12, 0,     //
                   -101, 11,  //
                   3, 234,    //
                   0, -101},
                  {expected});
  }
};

TEST_P(Hardmax1Page, Example1AlongTheMiddleAxis) {
  ExpectHardmax({1}, {1, 0,  //
                      0, 1,  //
                      1, 1,  //
                      0, 0});
}

TEST_P(Hardmax1Page, Example2AlongTheFirstAxis) {
  ExpectHardmax({0}, {1, 0,  //
                      0, 1,  //
                      0, 1,  //
                      1, 0});
}

TEST_P(Hardmax1Page, Example3AlongTheFirstAndTheLastAxis) {
  ExpectHardmax({0, 2}, {0, 0,  //
                         0, 1,  //
                         0, 1,  //
                         0, 0});
}

INSTANTIATE_TEST_SUITE_P(On, ArgminPage, ::testing::ValuesIn(TestDevices()));
INSTANTIATE_TEST_SUITE_P(On, ReducePage, ::testing::ValuesIn(TestDevices()));
INSTANTIATE_TEST_SUITE_P(On, TopK1Page, ::testing::ValuesIn(TestDevices()));
INSTANTIATE_TEST_SUITE_P(On, Hardmax1Page, ::testing::ValuesIn(TestDevices()));

}  // namespace
}  // namespace opmill
