#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/plan/plan.h"
#include "shaders/cumulative_summation_constants.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

constexpr AxisDirection kUp = AxisDirection::kIncreasing;
constexpr AxisDirection kDown = AxisDirection::kDecreasing;

TensorDesc Tensor(DataType type, std::vector<uint32_t> sizes) {
  return {type, std::move(sizes), {}};
}

std::vector<double> Sums(const CumulativeSummationDesc& desc, const std::vector<double>& elements) {
  const OperatorDesc validated = Validate(desc).value();
  const std::vector<std::byte> input = BytesOfNumbers(desc.input, elements);
  std::vector<std::byte> output(RequiredBytes(*validated.outputs[0]));
  EXPECT_EQ(ReferenceRun(validated, {absl::MakeConstSpan(input)}, {absl::MakeSpan(output)}),
            absl::OkStatus());
  return NumbersIn(*validated.outputs[0], output);
}

// The examples of DirectML's page.
TEST(CumulativeSummation, GivesWhatThePageShows) {
  const TensorDesc input = Tensor(DataType::kFloat32, {1, 1, 3, 4});
  const std::vector<double> elements = {2, 1, 3, 5, 3, 8, 7, 3, 9, 6, 2, 4};
  EXPECT_THAT(Sums({.input = input, .axis = 3}, elements),
              ElementsAre(2, 3, 6, 11, 3, 11, 18, 21, 9, 15, 17, 21));
  EXPECT_THAT(Sums({.input = input, .axis = 3, .has_exclusive_sum = true}, elements),
              ElementsAre(0, 2, 3, 6, 0, 3, 11, 18, 0, 9, 15, 17));
  EXPECT_THAT(Sums({.input = input, .axis = 3, .axis_direction = kDown}, elements),
              ElementsAre(11, 9, 8, 5, 21, 18, 10, 3, 21, 12, 6, 4));
  EXPECT_THAT(Sums({.input = input, .axis = 2}, elements),
              ElementsAre(2, 1, 3, 5, 5, 9, 10, 8, 14, 15, 12, 12));
}

TEST(CumulativeSummation, WrapsIntegers) {
  EXPECT_THAT(Sums({.input = Tensor(DataType::kInt32, {3})}, {2147483647, 1, 1}),
              ElementsAre(2147483647, -2147483648.0, -2147483647.0));
  EXPECT_THAT(
      Sums({.input = Tensor(DataType::kUint32, {2}), .axis_direction = kDown}, {1, 4294967295.0}),
      ElementsAre(0, 4294967295.0));
}

TEST(CumulativeSummation, RefusesAnAxisThatIsNotThere) {
  const absl::Status status =
      Validate(CumulativeSummationDesc{.input = Tensor(DataType::kFloat32, {2, 3}), .axis = 2})
          .status();
  EXPECT_EQ(status.message(), "axis (2) is not below the dimension count (2) of input.");
  EXPECT_EQ(FieldOf(status), "axis");
}

TEST(CumulativeSummation, RefusesAnOutputOfOtherSizes) {
  EXPECT_EQ(Validate(CumulativeSummationDesc{.input = Tensor(DataType::kFloat32, {2, 3}),
                                             .output = Tensor(DataType::kFloat32, {2, 1})})
                .status()
                .message(),
            "output.sizes[1] is 1, but 3 is what the operator writes there.");
}

std::vector<std::string> EntriesOf(const CumulativeSummationDesc& desc,
                                   const PlanOptions& options) {
  const OperatorPlan plan = MakePlan(Validate(desc).value(), options).value();
  std::vector<std::string> entries;
  for (const Pass& pass : plan.passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      entries.push_back(plan.kernels[dispatch.kernel].entry);
    }
  }
  return entries;
}

TEST(CumulativeSummationPlan, WalksShortAndManySequencesWithALaneEach) {
  const PlanOptions options = {.parallel_groups = 16, .threads = 64};
  EXPECT_THAT(EntriesOf({.input = Tensor(DataType::kFloat32, {100, 32}), .axis = 1}, options),
              ElementsAre("ScanSequences"));
  EXPECT_THAT(EntriesOf({.input = Tensor(DataType::kFloat32, {5000, 1024}), .axis = 0}, options),
              ElementsAre("ScanSequences"));
}

TEST(CumulativeSummationPlan, CutsFewLongSequencesIntoBlocks) {
  const PlanOptions options = {.parallel_groups = 16, .threads = 64};
  EXPECT_THAT(EntriesOf({.input = Tensor(DataType::kFloat32, {100'000}), .axis = 0}, options),
              ElementsAre("SumBlocks", "ScanBlocks"));
  // As many sequences as there are groups: nothing to carry.
  EXPECT_THAT(EntriesOf({.input = Tensor(DataType::kFloat32, {64, 1000}), .axis = 1}, options),
              ElementsAre("ScanBlocks"));
}

TEST(CumulativeSummationPlan, CarriesOverTheEndOfAView) {
  const PlanOptions options = {.max_view_elements = 4096, .parallel_groups = 16, .threads = 64};
  for (const AxisDirection direction : {kUp, kDown}) {
    const OperatorDesc desc =
        Validate(CumulativeSummationDesc{.input = Tensor(DataType::kFloat32, {100'000}),
                                         .axis_direction = direction})
            .value();
    const OperatorPlan plan = MakePlan(desc, options).value();
    ASSERT_EQ(plan.passes.size(), 2u);
    EXPECT_GT(plan.passes[1].dispatches.size(), 1u);
    uint32_t records = 0;
    for (const Dispatch& scan : plan.passes[1].dispatches) {
      const auto constants = scan.constants.As<CumulativeSummationConstants>();
      EXPECT_EQ(constants.first_record, records);
      records += constants.blocks;
    }
    const Dispatch& sum = plan.passes[0].dispatches[0];
    EXPECT_EQ(sum.constants.As<CumulativeSummationConstants>().record_stride, records);
  }
}

}  // namespace
}  // namespace opmill
