#include "client/cli/broadcast.h"

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/command_line_operators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

using Sizes = std::vector<uint32_t>;

constexpr TensorSchema kInputs[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
constexpr OperatorSchema kElementWise = {
    .name = "element_wise", .inputs = kInputs, .family = OperatorFamily::kElementWise};

TensorDesc Floats(const Sizes& sizes, const Sizes& strides = {}) {
  return {.data_type = DataType::kFloat32, .sizes = sizes, .strides = strides};
}

const std::vector<std::string> kNames = {"a.npy", "b.npy", "c.npy"};

TEST(Broadcast, RepeatsSizesOfOneAndMissingDimensions) {
  struct Case {
    TensorDesc a;
    TensorDesc b;
    Sizes sizes;
    Sizes a_strides;
    Sizes b_strides;
  };
  const Case cases[] = {
      {Floats({2, 3}), Floats({2, 3}), {2, 3}, {}, {}},
      {Floats({2, 3}), Floats({3}), {2, 3}, {}, {0, 1}},
      {Floats({1}), Floats({2, 3}), {2, 3}, {0, 0}, {}},
      {Floats({2, 1}), Floats({1, 3}), {2, 3}, {1, 0}, {0, 1}},
      {Floats({4, 1, 3}), Floats({5, 1}), {4, 5, 3}, {3, 0, 1}, {0, 1, 0}},
      {Floats({1, 1}), Floats({1}), {1, 1}, {}, {0, 1}},
      // Fortran order stays as it is.
      {Floats({2, 3}, {1, 2}), Floats({2, 1}), {2, 3}, {1, 2}, {1, 0}},
      {Floats({3, 2}, {1, 3}), Floats({4, 3, 2}), {4, 3, 2}, {0, 1, 3}, {}},
  };
  for (const Case& expected : cases) {
    SCOPED_TRACE(ToString(expected.a) + " and " + ToString(expected.b));
    std::vector<TensorDesc> inputs = {expected.a, expected.b};
    ASSERT_EQ(Broadcast(kElementWise, kNames, inputs), absl::OkStatus());
    EXPECT_EQ(inputs[0], Floats(expected.sizes, expected.a_strides));
    EXPECT_EQ(inputs[1], Floats(expected.sizes, expected.b_strides));
    // The file's elements, no more.
    EXPECT_EQ(SpannedBytes(inputs[0]), SpannedBytes(expected.a));
    EXPECT_EQ(SpannedBytes(inputs[1]), SpannedBytes(expected.b));
  }
}

TEST(Broadcast, TakesAnyNumberOfInputs) {
  std::vector<TensorDesc> inputs = {Floats({3}), Floats({2, 1}), Floats({4, 1, 1})};
  ASSERT_EQ(Broadcast(kElementWise, kNames, inputs), absl::OkStatus());
  EXPECT_THAT(inputs, ElementsAre(Floats({4, 2, 3}, {0, 0, 1}), Floats({4, 2, 3}, {0, 1, 0}),
                                  Floats({4, 2, 3}, {1, 0, 0})));
}

TEST(Broadcast, RefusesOtherShapesAndTypesWithBothNames) {
  std::vector<TensorDesc> inputs = {Floats({2, 3}), Floats({4, 3})};
  EXPECT_EQ(Broadcast(kElementWise, kNames, inputs).message(),
            "The shapes (2, 3) of a.npy and (4, 3) of b.npy cannot be broadcast: from the last "
            "dimension on, sizes must be equal or 1.");
  inputs = {Floats({3}), Floats({1}), Floats({3, 2})};
  EXPECT_EQ(Broadcast(kElementWise, kNames, inputs).message(),
            "The shapes (3,) of a.npy and (3, 2) of c.npy cannot be broadcast: from the last "
            "dimension on, sizes must be equal or 1.");
  inputs = {Floats({2}), {.data_type = DataType::kInt16, .sizes = {2}}};
  EXPECT_EQ(
      Broadcast(kElementWise, kNames, inputs).message(),
      "a.npy is float32 and b.npy is int16, but the inputs must have one type; convert them with "
      "--cast float32.");
}

TEST(Broadcast, LeavesOperatorsWithAxesAlone) {
  std::vector<TensorDesc> inputs = {Floats({2, 3}), Floats({4})};
  ASSERT_EQ(Broadcast(*FindOperatorName("reduce")->schema, kNames, inputs), absl::OkStatus());
  EXPECT_THAT(inputs, ElementsAre(Floats({2, 3}), Floats({4})));
}

}  // namespace
}  // namespace opmill
