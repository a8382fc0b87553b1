// Every operator that moves elements, in every type, on every device, against the reference.
// OPMILL_MOVEMENT selects one operator, and OPMILL_MOVEMENT_CASES the number of cases of each.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/conformance_runner.h"
#include "tests/conformance/movement_cases.h"
#include "tests/plan_bounds/plan_bounds.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

class MovementTest : public DeviceTest {};

TEST_P(MovementTest, EveryOperatorMovesEveryType) {
  const char* const only = std::getenv("OPMILL_MOVEMENT");
  const char* const count_text = std::getenv("OPMILL_MOVEMENT_CASES");
  uint64_t count = 12;  // of each operator and type
  ASSERT_TRUE(count_text == nullptr || absl::SimpleAtoi(count_text, &count));
  ConformanceRunner runner(device());
  const PlanOptions options = PlanOptionsFor(SizeOf(DeviceKind::kSoftware, 0, 0));
  uint64_t seed = 0;
  for (const OperatorSchema* const schema : Operators()) {
    if (schema->family != OperatorFamily::kMovement) continue;
    for (const DataType type : schema->support[0].rows[0].types.types()) {
      for (uint64_t i = 0; i < count; ++i) {
        ++seed;
        if (only != nullptr && schema->name != only) continue;
        runner.Run(RandomMovementCase(*schema, type, seed, options));
      }
    }
  }
  runner.Finish();
}

// Every index and offset, computed from the constants of plans with small views.
TEST(MovementPlans, StayWithinTheirViews) {
  const PlanOptions options = PlanOptionsFor(SizeOf(DeviceKind::kSoftware, 0, 0));
  for (const OperatorSchema* const schema : Operators()) {
    if (schema->family != OperatorFamily::kMovement) continue;
    const std::vector<DataType> types = schema->support[0].rows[0].types.types();
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      const ConformanceCase c =
          RandomMovementCase(*schema, types[seed % types.size()], seed, options);
      const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(FindPlanMistake(c.desc, c.options, *plan), "") << ToLine(c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, MovementTest, ::testing::ValuesIn(TestDevices()));

}  // namespace
}  // namespace opmill
