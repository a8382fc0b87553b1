#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/plan/plan.h"
#include "shaders/matrix_constants.h"
#include "tests/kernels/plans.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

OperatorPlan PlanOf(uint32_t rows, uint32_t depth, uint32_t columns,
                    const PlanOptions& options = Hardware(), DataType type = DataType::kFloat32) {
  return Plan(GemmDesc{.a = Tensor({rows, depth}, type), .b = Tensor({depth, columns}, type)},
              options);
}

MatrixConstants ConstantsOf(const OperatorPlan& plan, size_t pass = 0) {
  return plan.passes[pass].dispatches[0].constants.As<MatrixConstants>();
}

TEST(PlanMatrix, DividesKWhereResultsAreFew) {
  EXPECT_THAT(Entries(PlanOf(1, 1024, 4096)), ElementsAre("SumEach", "Join"));
  EXPECT_THAT(Entries(PlanOf(4096, 1024, 1)), ElementsAre("SumEach", "Join"));
  EXPECT_THAT(Entries(PlanOf(16, 1024, 4096)), ElementsAre("Multiply", "Join"));
  EXPECT_THAT(Entries(PlanOf(4096, 1024, 4096)), ElementsAre("Multiply"));
  EXPECT_THAT(Entries(PlanOf(1, 256, 1 << 18)), ElementsAre("SumEach")) << "enough lanes";
  EXPECT_THAT(Entries(PlanOf(512, 1024, 2048)), ElementsAre("Multiply")) << "enough tiles";
  EXPECT_THAT(Entries(PlanOf(1, 127, 4096)), ElementsAre("SumEach")) << "short sums";
  EXPECT_THAT(Entries(PlanOf(16, 255, 4096)), ElementsAre("Multiply")) << "short sums";
}

TEST(PlanMatrix, ALargerDeviceHasMoreSlots) {
  PlanOptions options = Hardware();
  options.parallel_groups = 64;
  EXPECT_EQ(ConstantsOf(PlanOf(1, 4096, 1024, options)).slots, 16u);
  options.parallel_groups = 256;
  EXPECT_EQ(ConstantsOf(PlanOf(1, 4096, 1024, options)).slots, 64u);
  options.parallel_groups = 4096;
  EXPECT_EQ(ConstantsOf(PlanOf(1, 4096, 1024, options)).slots, 128u) << "a lane adds so many";
}

TEST(PlanMatrix, LargeTilesAreMoreThanHalfOfTheGroupsThatFillTheDevice) {
  const auto halves = [](uint32_t rows) {
    const OperatorPlan plan = PlanOf(rows, 4096, 4096);
    EXPECT_THAT(Entries(plan), ElementsAre("Multiply")) << rows;
    return Macro(plan.kernels[0], "HALVES");
  };
  EXPECT_EQ(halves(4096), 2u);
  EXPECT_EQ(halves(2049), 2u);
  EXPECT_EQ(halves(2048), 1u);
}

TEST(PlanMatrix, SlotsOfTilesAreWholeBlocks) {
  const MatrixConstants constants = ConstantsOf(PlanOf(16, 1001, 4096));
  EXPECT_EQ(constants.slots, 14u);
  EXPECT_EQ(constants.slot_depth, 72u);
}

TEST(PlanMatrix, SumsOfSlotsAreNotRounded) {
  const OperatorPlan plan = PlanOf(1, 1024, 4096, Hardware(), DataType::kFloat16);
  EXPECT_EQ(Macro(plan.kernels[plan.passes[0].dispatches[0].kernel], "RESULT"),
            static_cast<uint32_t>(DataType::kFloat32));
  EXPECT_EQ(Macro(plan.kernels[plan.passes[1].dispatches[0].kernel], "RESULT"),
            static_cast<uint32_t>(DataType::kFloat16));
}

TEST(PlanMatrix, OnlyTheJoinScalesAndAdds) {
  const OperatorPlan plan = Plan(
      GemmDesc{
          .a = Tensor({1, 1024}), .b = Tensor({1024, 4096}), .c = Tensor({1, 4096}), .alpha = 2},
      Hardware());
  EXPECT_EQ(ConstantsOf(plan, 0).has_addend, 0u);
  EXPECT_EQ(ConstantsOf(plan, 0).alpha, 0x3F800000u);
  EXPECT_EQ(ConstantsOf(plan, 1).has_addend, 1u);
  EXPECT_EQ(ConstantsOf(plan, 1).alpha, 0x40000000u);
}

// Adjacent lanes read adjacent numbers.
TEST(PlanMatrix, SlotsAreAdjacentWhereKIs) {
  EXPECT_EQ(ConstantsOf(PlanOf(1, 1024, 4096)).slots_are_adjacent, 0u);
  EXPECT_EQ(ConstantsOf(PlanOf(4096, 1024, 1)).slots_are_adjacent, 1u);
  const OperatorPlan plan = Plan(GemmDesc{.a = Tensor({1, 1024}),
                                          .b = Tensor({4096, 1024}),
                                          .trans_b = MatrixTransform::kTranspose},
                                 Hardware());
  EXPECT_EQ(ConstantsOf(plan).slots_are_adjacent, 1u);
}

}  // namespace
}  // namespace opmill
