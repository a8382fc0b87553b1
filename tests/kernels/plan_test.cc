#include "kernels/plan/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/tuning.h"
#include "shaders/reduction_constants.h"
#include "tests/kernels/plans.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

OperatorDesc Sum(TensorDesc input, std::vector<uint32_t> axes) {
  return ReduceDesc{
      .function = ReduceFunction::kSum, .input = std::move(input), .axes = std::move(axes)};
}

constexpr uint32_t kAligned = 0, kShifted = 1, kScalar = 2;

struct WalkCase {
  std::string name;
  TensorDesc input;
  std::vector<uint32_t> axes;
  std::string entry;
  uint32_t load;
};

TEST(PlanReduce, ChoosesTheWalkByMemoryLayout) {
  const std::vector<WalkCase> cases = {
      {"rows of whole vectors", Tensor({64, 256}), {1}, "ReduceRows", kAligned},
      {"rows that end inside a vector", Tensor({64, 255}), {1}, "ReduceRows", kShifted},
      {"halves need rows of eight",
       Tensor({64, 252}, DataType::kFloat16),
       {1},
       "ReduceRows",
       kShifted},
      {"all axes are one row", Tensor({3, 5, 16}), {0, 1, 2}, "ReduceRows", kAligned},
      {"outer and inner axis", Tensor({4, 6, 16}), {0, 2}, "ReduceRows", kAligned},
      {"columns of whole vectors", Tensor({64, 256}), {0}, "ReduceColumns", kAligned},
      {"columns whose rows start anywhere", Tensor({64, 255}), {0}, "ReduceColumns", kShifted},
      {"a middle axis", Tensor({4, 64, 32}), {1}, "ReduceColumns", kAligned},
      {"rows of a transposed tensor",
       Tensor({256, 64}, DataType::kFloat32, {1, 256}),
       {0},
       "ReduceRows",
       kAligned},
      {"no neighbours at all",
       Tensor({16, 16}, DataType::kFloat32, {64, 2}),
       {0},
       "ReduceColumns",
       kScalar},
      {"nothing to reduce", Tensor({64, 1}), {1}, "ReduceColumns", kAligned},
  };
  for (const WalkCase& c : cases) {
    SCOPED_TRACE(c.name);
    const OperatorPlan plan = Plan(Sum(c.input, c.axes));
    ASSERT_FALSE(plan.kernels.empty());
    EXPECT_EQ(plan.kernels[0].entry, c.entry);
    EXPECT_EQ(Macro(plan.kernels[0], "LOAD"), c.load);
  }
}

TEST(PlanReduce, SharesOneKernelAmongShapesOfAKind) {
  EXPECT_EQ(Plan(Sum(Tensor({6400, 256}), {1})).kernels,
            Plan(Sum(Tensor({1000, 64, 256}), {2})).kernels);
}

TEST(PlanReduce, SplitsOneLongRowOverGroupsAndCombinesThem) {
  const OperatorPlan plan = Plan(Sum(Tensor({1 << 24}), {0}));
  EXPECT_THAT(Entries(plan), ElementsAre("ReduceRows", "ReduceRows"));
  ASSERT_THAT(plan.passes, SizeIs(2));
  const auto walk = plan.passes[0].dispatches[0].constants.As<ReductionConstants>();
  EXPECT_GE(walk.splits, 16u);
  EXPECT_LE(walk.split_items, tuning::kMaxLaneItems << walk.lane_bits);
  EXPECT_EQ(plan.passes[1].dispatches[0].constants.As<ReductionConstants>().item_count,
            walk.splits);
}

TEST(PlanReduce, LimitsTheStepsOfALane) {
  const std::vector<OperatorDesc> descs = {
      Sum(Tensor({1 << 27}), {0}),
      Sum(Tensor({1 << 22, 4}), {0}),
      Sum(Tensor({1 << 20, 3}, DataType::kFloat32, {8, 2}), {0}),
      Sum(Tensor({1 << 10, 1 << 10, 3}), {0, 2}),
  };
  for (const OperatorDesc& desc : descs) {
    for (const Pass& pass : Plan(desc).passes) {
      for (const Dispatch& dispatch : pass.dispatches) {
        const auto constants = dispatch.constants.As<ReductionConstants>();
        EXPECT_GE(constants.split_items, 1u);
        EXPECT_LE(constants.split_items >> constants.lane_bits, 65535u);
        EXPECT_LE(dispatch.groups[0], 65535u);
        EXPECT_LE(dispatch.groups[1], 65535u);
      }
    }
  }
}

TEST(PlanReduce, ReusesScratchBetweenSlices) {
  // Its rows are too far apart for one view, so every result is combined from two records.
  const OperatorPlan plan = Plan(ReduceDesc{.function = ReduceFunction::kMax,
                                            .input = Tensor({3, 1 << 30}, DataType::kInt8),
                                            .axes = {0}});
  EXPECT_LE(plan.scratch_bytes, 2 * tuning::kMaxListRecords * kVectorBytes);
}

TEST(PlanReduce, GivesShortRowsALaneEachAndNoBarrier) {
  const OperatorPlan plan = Plan(Sum(Tensor({1 << 24, 4}), {1}));
  ASSERT_THAT(plan.kernels, SizeIs(1));
  EXPECT_EQ(Macro(plan.kernels[0], "SHARE"), 0u);
  EXPECT_EQ(plan.passes[0].dispatches[0].constants.As<ReductionConstants>().splits, 1u);
}

TEST(PlanReduce, FoldsFourNeighbouringColumnsSideBySide) {
  const auto width_of = [](DataType type, std::vector<uint32_t> sizes) {
    return Macro(Plan(Sum(Tensor(std::move(sizes), type), {0})).kernels[0], "WIDTH");
  };
  EXPECT_EQ(width_of(DataType::kFloat32, {64, 64}), 4u);
  EXPECT_EQ(width_of(DataType::kFloat16, {64, 63}), 4u);
  EXPECT_EQ(width_of(DataType::kInt64, {64, 64}), 1u);
  EXPECT_EQ(width_of(DataType::kFloat32, {64}), 1u);  // a row
}

TEST(PlanReduce, WalksLongColumnsInTilesWhereTheDeviceIsAProcessor) {
  struct Case {
    std::string name;
    TensorDesc input;
    uint32_t axis;
    std::string entry;
    uint32_t lane_units;
    uint64_t groups;  // of one split
  };
  const std::vector<Case> cases = {
      {"wide", Tensor({8192, 8192}), 0, "ReduceTiles", 32, 8},
      {"a middle axis", Tensor({64, 1024, 1024}), 1, "ReduceTiles", 32, 64},
      {"no full tile", Tensor({256, 1056}), 0, "ReduceTiles", 17, 2},
      {"one lane has two", Tensor({256, 36}), 0, "ReduceTiles", 2, 1},
      {"as many as lanes", Tensor({256, 32}), 0, "ReduceColumns", 1, 1},
      {"few rows, wide ones", Tensor({64, 262144}), 0, "ReduceTiles", 32, 256},
      {"few rows, too few tiles", Tensor({64, 8192}), 0, "ReduceColumns", 4, 64},
      {"few rows", Tensor({64, 512}), 0, "ReduceColumns", 1, 16},
      {"fewer", Tensor({47, 8192}), 0, "ReduceColumns", 4, 64},
      {"halves", Tensor({8192, 8192}, DataType::kFloat16), 0, "ReduceTiles", 32, 4},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const OperatorPlan plan = Plan(Sum(c.input, {c.axis}), Software());
    const Dispatch& walk = plan.passes[0].dispatches[0];
    EXPECT_EQ(plan.kernels[0].entry, c.entry);
    EXPECT_EQ(walk.constants.groups().lane_units, c.lane_units);
    EXPECT_EQ(uint64_t{walk.groups[0]} * walk.groups[1],
              c.groups * walk.constants.As<ReductionConstants>().splits);
  }
}

TEST(PlanArgReduce, WalksNarrowColumnsInTilesHoweverFewTheirRows) {
  const auto plan = [](const TensorDesc& input) {
    return Plan(ArgReduceDesc{.input = input, .axes = {0}}, Software());
  };
  const auto entry = [&](const TensorDesc& input) { return plan(input).kernels[0].entry; };
  EXPECT_EQ(entry(Tensor({2, 8192}, DataType::kInt8)), "ReduceTiles");
  EXPECT_EQ(entry(Tensor({2, 8192}, DataType::kFloat16)), "ReduceTiles");
  EXPECT_EQ(entry(Tensor({2, 8192})), "ReduceColumns");
  EXPECT_EQ(entry(Tensor({2, 64}, DataType::kFloat16)), "ReduceColumns") << "a vector a lane";
  const auto lane_units = [&](const TensorDesc& input) {
    return plan(input).passes[0].dispatches[0].constants.groups().lane_units;
  };
  EXPECT_EQ(lane_units(Tensor({2, 8192}, DataType::kInt8)), 1u) << "so that the device is filled";
  EXPECT_EQ(lane_units(Tensor({2, 1 << 20}, DataType::kInt8)), 32u);
}

TEST(PlanReduce, GivesLanesSeveralUnitsOfFewStepsWhereTheDeviceIsAProcessor) {
  struct Case {
    std::string name;
    TensorDesc input;
    uint32_t axis;
    uint32_t lane_units;
    uint64_t groups;
  };
  // At most 1024 steps per lane, and at least 64 groups of 8 lanes.
  const std::vector<Case> cases = {
      {"rows of a vector", Tensor({4194304, 4}), 1, 1024, 512},
      {"rows of two", Tensor({4194304, 8}), 1, 512, 1024},
      {"short rows", Tensor({262144, 64}), 1, 64, 512},
      {"groups in time", Tensor({65536, 4}), 1, 128, 64},
      {"the last one has fewer", Tensor({65537, 4}), 1, 128, 65},
      {"rows enough for the lanes", Tensor({512, 4}), 1, 1, 64},
      {"long rows", Tensor({65536, 4096}), 1, 1, 8192},
      {"few rows, which lanes share", Tensor({8, 4096}), 1, 1, 8},
      {"short columns", Tensor({4, 4194304}), 0, 256, 512},
      {"a middle axis", Tensor({65536, 4, 16}), 1, 256, 128},
      {"lone elements", Tensor({4, 65536}, DataType::kFloat32, {131072, 2}), 0, 128, 64},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Dispatch walk = Plan(Sum(c.input, {c.axis}), Software()).passes[0].dispatches[0];
    EXPECT_EQ(walk.constants.groups().lane_units, c.lane_units);
    EXPECT_EQ(uint64_t{walk.groups[0]} * walk.groups[1], c.groups);
    PlanOptions hardware = Software();
    hardware.prefers_wide_rows = true;
    const OperatorPlan wide = Plan(Sum(c.input, {c.axis}), hardware);
    EXPECT_EQ(wide.passes[0].dispatches[0].constants.groups().lane_units, 1u);
  }
}

TEST(PlanReduce, WalksMoreRowsOfATileAtATimeWhereTheyAreNarrowAndClose) {
  const auto rows = [](const TensorDesc& input, uint32_t axis) {
    const OperatorPlan plan = Plan(Sum(input, {axis}), Software());
    EXPECT_EQ(plan.kernels[0].entry, "ReduceTiles");
    return plan.passes[0].dispatches[0].constants.As<ReductionConstants>().tile_rows;
  };
  EXPECT_EQ(rows(Tensor({8192, 8192}), 0), 16u);
  EXPECT_EQ(rows(Tensor({8192, 512}), 0), 16u);
  EXPECT_EQ(rows(Tensor({8192, 8192}, DataType::kFloat16), 0), 16u);
  EXPECT_EQ(rows(Tensor({64, 1024, 1024}, DataType::kFloat16), 1), 32u);
  EXPECT_EQ(rows(Tensor({64, 1024, 1032}, DataType::kFloat16), 1), 16u);
}

TEST(PlanReduce, WalksEveryTypeAndFunctionInTiles) {
  for (const DataType type : kAllDataTypes) {
    const ArgReduceDesc desc = {.input = Tensor({8192, 8192}, type), .axes = {0}};
    EXPECT_EQ(Plan(desc, Software()).kernels[0].entry, "ReduceTiles") << ToString(type);
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const ReduceDesc desc = {
        .function = ReduceFunction::kLogSumExp, .input = Tensor({8192, 8192}, type), .axes = {0}};
    EXPECT_EQ(Plan(desc, Software()).kernels[0].entry, "ReduceTiles") << ToString(type);
  }
}

// The kernel for tiles counts rows in 16 bits.
TEST(PlanReduce, HasNoTilesOfMoreRowsThanTheyCount) {
  // The same row repeated, so that records of splits, not the input, fill views.
  const ArgReduceDesc desc = {.input = Tensor({70'000, 72}, DataType::kFloat16, {0, 1}),
                              .axes = {0}};
  PlanOptions options = Software();
  const OperatorPlan tiles = Plan(desc, options);
  EXPECT_EQ(tiles.kernels[0].entry, "ReduceTiles");
  EXPECT_LE(tiles.passes[0].dispatches[0].constants.As<ReductionConstants>().split_items,
            tuning::kMaxTileItems);

  options.max_view_elements = uint64_t{16} * 72;
  const OperatorPlan columns = Plan(desc, options);
  EXPECT_EQ(columns.kernels[0].entry, "ReduceColumns");
  EXPECT_GT(columns.passes[0].dispatches[0].constants.As<ReductionConstants>().split_items,
            tuning::kMaxTileItems);
}

TEST(PlanArgReduce, HasOneKernelForTheFirstAndTheLastOfEquals) {
  const auto plan = [](AxisDirection direction) {
    return Plan(ArgReduceDesc{.input = Tensor({64}), .axes = {0}, .axis_direction = direction});
  };
  const OperatorPlan first = plan(AxisDirection::kIncreasing);
  const OperatorPlan last = plan(AxisDirection::kDecreasing);
  EXPECT_EQ(first.kernels, last.kernels);
  EXPECT_EQ(first.passes[0].dispatches[0].constants.As<ReductionConstants>().position_mask, 0u);
  EXPECT_EQ(last.passes[0].dispatches[0].constants.As<ReductionConstants>().position_mask, ~0u);
}

TEST(PlanReduce, LetsALaneOfASoftwareDeviceWalkALongRowAloneWhereRowsAreMany) {
  EXPECT_EQ(Macro(Plan(Sum(Tensor({8192, 8192}), {1}), Software()).kernels[0], "SHARE"), 0u);
  EXPECT_EQ(Macro(Plan(Sum(Tensor({64, 8192}), {1}), Software()).kernels[0], "SHARE"), 1u);
}

TEST(PlanReduce, TellsKernelsOfASoftwareDeviceHowFewItemsThereAreWhereResultsAreMany) {
  const auto items = [](const TensorDesc& input, uint32_t axis,
                        const PlanOptions& options = Software()) {
    return Macro(Plan(Sum(input, {axis}), options).kernels[0], "ITEMS");
  };
  EXPECT_EQ(items(Tensor({4096, 4}), 1), 1u);
  EXPECT_EQ(items(Tensor({4096, 3}), 1), 2u);  // rows of three lie on two vectors at most
  EXPECT_EQ(items(Tensor({4096, 32}), 1), 8u);
  EXPECT_EQ(items(Tensor({4096, 36}), 1), 0u);
  EXPECT_EQ(items(Tensor({512, 4}), 1), 0u);  // a result for each lane that fills the device
  EXPECT_EQ(items(Tensor({5, 8192}), 0), 5u);
  EXPECT_EQ(items(Tensor({9, 8192}), 0), 0u);
  EXPECT_EQ(items(Tensor({4096, 5}, DataType::kFloat32, {64, 3}), 1), 5u);  // elements apart
  PlanOptions hardware = Software();
  hardware.prefers_wide_rows = true;
  EXPECT_EQ(items(Tensor({4096, 4}), 1, hardware), 0u);
}

TEST(PlanReduce, NeedsNoDivisionInKernelsWithFixedItems) {
  const TensorDesc two_dims = Tensor({4096, 2, 8, 2}, DataType::kFloat32, {64, 32, 4, 1});
  EXPECT_EQ(Macro(Plan(Sum(two_dims, {1, 3}), Software()).kernels[0], "ITEMS"), 0u);
}

TEST(PlanReduce, LetsLanesOfASoftwareDeviceShareALongRowInStretches) {
  const auto walk = [](const TensorDesc& input, const PlanOptions& options) {
    return Plan(Sum(input, {0}), options)
        .passes[0]
        .dispatches[0]
        .constants.As<ReductionConstants>();
  };
  const ReductionConstants stretches = walk(Tensor({1 << 24}), Software());
  EXPECT_GE(stretches.lane_items << stretches.lane_bits, stretches.split_items);
  EXPECT_EQ(stretches.lane_items / tuning::kLineItems % 2, 1u);
  EXPECT_EQ(walk(Tensor({1024}), Software()).lane_items, 0u);  // too short to be cut
  PlanOptions hardware = Software();
  hardware.prefers_wide_rows = true;
  EXPECT_EQ(walk(Tensor({1 << 24}), hardware).lane_items, 0u);
}

TEST(Plan, KeepsEveryViewWithinTheLimitAndTheBuffer) {
  const std::vector<OperatorDesc> descs = {
      Sum(Tensor({300, 700}), {1}),
      Sum(Tensor({300, 700}), {0}),
      ArgReduceDesc{.input = Tensor({50, 40, 30}, DataType::kInt8), .axes = {0, 2}},
      HardmaxDesc{.input = Tensor({37, 1001}, DataType::kFloat16), .axes = {0}},
      TopKDesc{.input = Tensor({9, 5000}), .axis = 1, .k = 7},
      TopKDesc{.input = Tensor({5000, 9}), .axis = 0, .k = 100},
  };
  PlanOptions options;
  options.max_view_elements = 4096;
  for (const OperatorDesc& desc : descs) {
    SCOPED_TRACE(ToString(desc));
    const OperatorPlan plan = Plan(desc, options);
    for (const Pass& pass : plan.passes) {
      for (const Dispatch& dispatch : pass.dispatches) {
        for (const auto* views : {dispatch.reads.data(), dispatch.writes.data()}) {
          for (int slot = 0; slot < 2; ++slot) {
            const BufferView& view = views[slot];
            if (view.element_count == 0) continue;
            EXPECT_LE(view.element_count, options.max_view_elements);
            EXPECT_EQ(view.offset_bytes % 16, 0u);
            const uint64_t end =
                view.offset_bytes + view.element_count * ViewElementBytes(view.format);
            // Reads may include the whole last vector.
            EXPECT_LE(end, (BytesOf(plan, view.role) + 15) / 16 * 16);
          }
        }
      }
    }
  }
}

TEST(PlanHardmax, ZeroesTheOutputAndScattersOnes) {
  const OperatorPlan plan = Plan(HardmaxDesc{.input = Tensor({64, 256}), .axes = {1}});
  ASSERT_THAT(plan.passes, SizeIs(2));
  ASSERT_THAT(plan.passes[0].fills, SizeIs(1));
  EXPECT_EQ(plan.passes[0].fills[0].size_bytes, 64u * 256 * 4);
  EXPECT_THAT(Entries(plan), ElementsAre("ReduceRows", "ScatterOnes"));
}

TEST(PlanHardmax, LeavesOnePositionOfEachResultInScratch) {
  const OperatorPlan plan = Plan(HardmaxDesc{.input = Tensor({4096, 64, 7}), .axes = {1}});
  EXPECT_EQ(plan.scratch_bytes, 4096u * 7 * 4);
  const BufferView& written = plan.passes[0].dispatches[0].writes[0];
  EXPECT_EQ(written.role, BufferRole::Scratch());
  EXPECT_EQ(written.format, ViewFormat::kUint32);
  const Dispatch& scatter = plan.passes[1].dispatches[0];
  EXPECT_EQ(scatter.reads[0].role, BufferRole::Scratch());
  EXPECT_EQ(scatter.reads[0].element_count, 4096u * 7 / 4);
}

TEST(PlanHardmax, SlicesOutputAndPositionsAlikeWhereViewsAreSmall) {
  PlanOptions options;
  options.max_view_elements = 4096;
  const OperatorPlan plan =
      Plan(HardmaxDesc{.input = Tensor({20000, 3}, DataType::kFloat16), .axes = {1}}, options);
  uint64_t results = 0;
  for (const Dispatch& scatter : plan.passes.back().dispatches) {
    EXPECT_EQ(plan.kernels[scatter.kernel].entry, "ScatterOnes");
    results += scatter.constants.groups().unit_count;
  }
  EXPECT_GT(plan.passes.back().dispatches.size(), 1u);
  EXPECT_EQ(results, 20000u);
}

TEST(Plan, RefusesMoreScratchThanAllowed) {
  PlanOptions options;
  options.max_scratch_bytes = 1 << 20;
  const absl::Status status =
      TryPlan(TopKDesc{.input = Tensor({1 << 20}), .axis = 0, .k = 1 << 20}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "The operator needs 16911360 bytes of scratch memory, more than max_scratch_bytes "
            "(1048576).");
}

TEST(Plan, RefusesStridesThatNeedADispatchForEachElement) {
  const TensorDesc far = Tensor({0xFFFFFFFF, 1}, DataType::kInt8, {0xFFFFFFFF, 1});
  const std::vector<OperatorDesc> descs = {
      ReduceDesc{.function = ReduceFunction::kMax, .input = far, .axes = {1}},
      ReduceDesc{.function = ReduceFunction::kMax, .input = far, .axes = {0}},
      ArgReduceDesc{.input = far, .axes = {1}},
      TopKDesc{.input = far, .axis = 1, .k = 1},
  };
  for (const OperatorDesc& desc : descs) {
    SCOPED_TRACE(ToString(desc));
    const absl::Status status = TryPlan(desc).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(),
              "The strides reach so far that the operator needs 131072 dispatches or more; the "
              "limit is 131071.");
  }
}

TEST(Plan, ZeroesTheGapsOfAStridedOutputOnly) {
  ReduceDesc desc = {.function = ReduceFunction::kSum, .input = Tensor({8, 8}), .axes = {1}};
  EXPECT_THAT(Plan(desc).passes[0].fills, IsEmpty());
  desc.output = Tensor({8, 1}, DataType::kFloat32, {3, 1});
  EXPECT_THAT(Plan(desc).passes[0].fills, SizeIs(1));
}

}  // namespace
}  // namespace opmill
