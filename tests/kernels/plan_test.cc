#include "kernels/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/rounding.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/plan/tuning.h"
#include "shaders/hardmax_constants.h"
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

struct LoadCase {
  std::string name;
  TensorDesc input;
  std::vector<uint32_t> axes;
  uint32_t load;
};

TEST(PlanReduce, ChoosesTheLoadByMemoryLayout) {
  const std::vector<LoadCase> cases = {
      {"rows of whole vectors", Tensor({64, 256}), {1}, LOAD_ROW_ALIGNED},
      {"rows that end inside a vector", Tensor({64, 255}), {1}, LOAD_ROW_SHIFTED},
      {"halves need rows of eight", Tensor({64, 252}, DataType::kFloat16), {1}, LOAD_ROW_SHIFTED},
      {"all axes are one row", Tensor({3, 5, 16}), {0, 1, 2}, LOAD_ROW_ALIGNED},
      {"outer and inner axis", Tensor({4, 6, 16}), {0, 2}, LOAD_ROW_ALIGNED},
      {"columns of whole vectors", Tensor({64, 256}), {0}, LOAD_COLUMN_ALIGNED},
      {"columns whose rows start anywhere", Tensor({64, 255}), {0}, LOAD_COLUMN_SHIFTED},
      {"a middle axis", Tensor({4, 64, 32}), {1}, LOAD_COLUMN_ALIGNED},
      {"rows of a transposed tensor",
       Tensor({256, 64}, DataType::kFloat32, {1, 256}),
       {0},
       LOAD_ROW_ALIGNED},
      {"no neighbors at all", Tensor({16, 16}, DataType::kFloat32, {64, 2}), {0}, LOAD_SCALAR},
      {"nothing to reduce", Tensor({64, 1}), {1}, LOAD_COLUMN_ALIGNED},
  };
  for (const LoadCase& c : cases) {
    SCOPED_TRACE(c.name);
    const OperatorPlan plan = Plan(Sum(c.input, c.axes));
    ASSERT_FALSE(plan.kernels.empty());
    EXPECT_EQ(Macro(plan.kernels[0], "LOAD"), c.load);
  }
}

TEST(PlanReduce, SharesOneKernelAmongShapesOfAKind) {
  EXPECT_EQ(Plan(Sum(Tensor({6400, 256}), {1})).kernels,
            Plan(Sum(Tensor({1000, 64, 256}), {2})).kernels);
}

ReductionConstants FirstReduction(const OperatorPlan& plan) {
  return plan.passes[0].dispatches[0].constants.As<ReductionConstants>();
}

// The most items that a lane takes.
uint64_t LaneItems(const ReductionConstants& constants) {
  return CeilDiv(constants.item_count, uint64_t{constants.splits} << constants.lane_bits);
}

TEST(PlanReduce, SplitsOneLongRowOverGroupsOfWhichTheLastJoinsThem) {
  const OperatorPlan plan = Plan(Sum(Tensor({1 << 24}), {0}));
  EXPECT_THAT(Entries(plan), ElementsAre("Reduce"));
  ASSERT_THAT(plan.passes, SizeIs(1));
  const auto constants = plan.passes[0].dispatches[0].constants.As<ReductionConstants>();
  EXPECT_GE(constants.splits, 16u);
  EXPECT_LE(LaneItems(constants), tuning::kMaxSummedItems);
  // One tile, and so one counter, which is set to zero before.
  const BufferView& partials = plan.passes[0].dispatches[0].writes[1];
  EXPECT_GE(partials.element_count, constants.partials_base + constants.splits);
  ASSERT_THAT(plan.passes[0].fills, SizeIs(1));
  EXPECT_EQ(plan.passes[0].fills[0].role, BufferRole::Scratch());
  EXPECT_EQ(plan.passes[0].fills[0].offset_bytes, partials.offset_bytes);
  EXPECT_EQ(plan.passes[0].fills[0].size_bytes, constants.partials_base * 4);
}

// Not more: the few that are left over would run alone, after all others.
TEST(PlanReduce, HasNoMoreGroupsThanFillTheDevice) {
  const ReductionConstants constants =
      FirstReduction(Plan(Sum(Tensor({8192, 8192}), {0}), Hardware()));
  EXPECT_GT(constants.splits, 1u);
  EXPECT_LE(constants.tiles * constants.splits, Hardware().parallel_groups);
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
        EXPECT_GE(LaneItems(constants), 1u);
        EXPECT_LE(LaneItems(constants), 65535u);
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

TEST(PlanReduce, GivesARowAsManyLanesAsItIsWorth) {
  struct Case {
    std::string name;
    TensorDesc input;
    uint32_t lanes;
  };
  const std::vector<Case> cases = {
      {"rows of a vector", Tensor({1 << 20, 4}), 1},
      {"rows of three", Tensor({1 << 20, 12}), 1},
      {"a cache line", Tensor({1 << 20, 32}), 2},
      {"rows of 16", Tensor({1 << 20, 64}), 4},
      {"eight items a lane", Tensor({8192, 1024}), 32},
      {"a whole group", Tensor({8192, 8192}), 256},
      {"no more than a group", Tensor({1024, 1 << 16}), 256},
      {"bytes", Tensor({8192, 4096}, DataType::kInt8), 32},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const OperatorPlan plan = Plan(
        ReduceDesc{.function = ReduceFunction::kMax, .input = c.input, .axes = {1}}, Hardware());
    const ReductionConstants constants = FirstReduction(plan);
    EXPECT_EQ(1u << constants.lane_bits, c.lanes);
    EXPECT_EQ(constants.part_shift, 0u);
    EXPECT_EQ(constants.splits, 1u);
    EXPECT_EQ(plan.passes[0].dispatches[0].groups[0], c.input.sizes[0] / (256 / c.lanes));
  }
}

TEST(PlanReduce, LetsLanesShareColumnsOfWhich32AreAdjacent) {
  const auto lanes = [](std::vector<uint32_t> sizes) {
    const ReductionConstants constants =
        FirstReduction(Plan(Sum(Tensor(std::move(sizes)), {0}), Hardware()));
    EXPECT_EQ(256u >> constants.lane_bits, 1u << constants.part_shift);
    return 1u << constants.lane_bits;
  };
  EXPECT_EQ(lanes({8192, 8192}), 8u);
  EXPECT_EQ(lanes({8192, 16}), 64u) << "four units, so that more lanes share each";
  EXPECT_EQ(lanes({8, 8192}), 1u) << "eight items, which are not worth sharing";
}

// What the lanes of an H200 have in flight in the pass that reads the input: up to four vectors for
// each lane (reduction.hlsli).
uint64_t BytesInFlight(const OperatorPlan& plan) {
  uint64_t lanes = 0, bytes = 0;
  for (const Dispatch& dispatch : plan.passes[0].dispatches) {
    const auto constants = dispatch.constants.As<ReductionConstants>();
    const uint64_t groups = uint64_t{dispatch.groups[0]} * dispatch.groups[1];
    lanes += groups * 256;
    bytes += groups * 256 * std::min<uint64_t>(LaneItems(constants), 4) * kVectorBytes;
  }
  const uint64_t resident = uint64_t{AdapterSize().groups} * 256;
  return lanes <= resident ? bytes : static_cast<uint64_t>(double(bytes) / lanes * resident);
}

// An H200 needs 3.4 MB in flight: 4.8 TB/s, 700 ns.
TEST(PlanReduce, KeepsTheMemoryOfALargeGpuBusyInOnePass) {
  const std::vector<std::pair<std::vector<uint32_t>, uint32_t>> shapes = {
      {{8192, 8192}, 0},  {{8192, 8192}, 1},  {{1 << 26}, 0},     {{64, 1 << 20}, 0},
      {{64, 1 << 20}, 1}, {{1 << 20, 64}, 0}, {{1 << 20, 64}, 1}, {{64, 1024, 1024}, 1},
      {{4, 1 << 24}, 1},  {{1 << 24, 4}, 0},  {{1 << 24, 4}, 1},  {{3, 1 << 25}, 1},
      {{8192, 16384}, 0}, {{67108, 1000}, 0}, {{67108, 1000}, 1}, {{8200, 8191}, 0},
      {{8200, 8191}, 1},  {{2, 1 << 26}, 0},  {{1 << 26}, 0},     {{16, 2048, 2048}, 1}};
  uint32_t plans = 0;
  uint64_t least = ~uint64_t{0};
  for (const auto& [sizes, axis] : shapes) {
    for (const DataType type : kAllDataTypes) {
      const TensorDesc input = Tensor(sizes, type);
      if (RequiredBytes(input) < uint64_t{64} << 20) continue;
      std::vector<OperatorDesc> descs;
      for (const AxisDirection direction :
           {AxisDirection::kIncreasing, AxisDirection::kDecreasing}) {
        descs.push_back(ArgReduceDesc{.input = input, .axes = {axis}, .axis_direction = direction});
      }
      for (const ReduceFunction function :
           {ReduceFunction::kMax, ReduceFunction::kSum, ReduceFunction::kL1,
            ReduceFunction::kLogSumExp, ReduceFunction::kAverage}) {
        const OperatorDesc desc = ReduceDesc{.function = function, .input = input, .axes = {axis}};
        if (Validate(desc).ok()) descs.push_back(desc);
      }
      if (IsFloat(type)) descs.push_back(HardmaxDesc{.input = input, .axes = {axis}});
      for (const OperatorDesc& desc : descs) {
        SCOPED_TRACE(ToString(desc));
        const OperatorPlan plan = Plan(desc, PlanOptionsFor());
        const uint64_t bytes = BytesInFlight(plan);
        EXPECT_GE(bytes, 3'400'000u);
        // Those of hardmax's results that fit into scratch take two.
        const uint64_t results = RequiredBytes(input) / ElementBytes(type) / sizes[axis];
        const bool is_hardmax = desc.schema->name == "hardmax";
        EXPECT_LE(plan.passes.size(),
                  is_hardmax ? 2 * CeilDiv(results, tuning::kMaxListRecords) : 1);
        least = std::min(least, bytes);
        ++plans;
      }
    }
  }
  std::printf("%u plans; at least %.1f MB in flight\n", plans, double(least) / 1e6);
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

TEST(PlanHardmax, WritesEachElementOnceAndFillsNoOutput) {
  for (const uint32_t axis : {0u, 1u}) {
    for (const uint32_t rows : {64u, 8192u}) {
      const OperatorPlan plan =
          Plan(HardmaxDesc{.input = Tensor({rows, 8192}), .axes = {axis}}, Hardware());
      EXPECT_THAT(Entries(plan), ElementsAre("Reduce", "WriteOnes"));
      ASSERT_THAT(plan.passes, SizeIs(2));
      for (const Fill& fill : plan.passes[0].fills) EXPECT_EQ(fill.role, BufferRole::Scratch());
    }
  }
}

TEST(PlanHardmax, LeavesARecordOfEachResultInScratch) {
  const OperatorPlan plan = Plan(HardmaxDesc{.input = Tensor({8192, 4096}), .axes = {0}});
  EXPECT_GT(FirstReduction(plan).splits, 1u);
  const Dispatch& write = plan.passes[1].dispatches[0];
  EXPECT_EQ(write.reads[0].role, BufferRole::Scratch());
  EXPECT_EQ(write.reads[0].element_count, 4096u);
  EXPECT_EQ(write.constants.As<HardmaxConstants>().record_count, 1u);
}

TEST(PlanHardmax, StoresVectorsWhereTheOutputHasWholeOnes) {
  const auto store = [](TensorDesc input, uint32_t axis, std::vector<uint32_t> strides = {}) {
    HardmaxDesc desc = {.input = std::move(input), .axes = {axis}};
    desc.output = Tensor(desc.input.sizes, desc.input.data_type, std::move(strides));
    return Macro(Plan(desc).kernels.back(), "STORE");
  };
  EXPECT_EQ(store(Tensor({10, 12}), 1), STORE_OF_ROW);
  EXPECT_EQ(store(Tensor({10, 12}), 0), STORE_OF_COLUMNS);
  EXPECT_EQ(store(Tensor({10, 12}, DataType::kFloat16), 1), STORE_ELEMENT);
  EXPECT_EQ(store(Tensor({10, 16}, DataType::kFloat16), 1), STORE_OF_ROW);
  EXPECT_EQ(store(Tensor({10, 12}), 1, {13, 1}), STORE_ELEMENT) << "rows start inside vectors";
  EXPECT_EQ(store(Tensor({10, 12}), 1, {24, 2}), STORE_ELEMENT);
}

TEST(PlanHardmax, SlicesOutputAndPositionsAlikeWhereViewsAreSmall) {
  PlanOptions options;
  options.max_view_elements = 4096;
  const OperatorPlan plan =
      Plan(HardmaxDesc{.input = Tensor({20000, 3}, DataType::kFloat16), .axes = {1}}, options);
  uint64_t results = 0;
  for (const Dispatch& write : plan.passes.back().dispatches) {
    EXPECT_EQ(plan.kernels[write.kernel].entry, "WriteOnes");
    results += write.constants.groups().unit_count;
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
