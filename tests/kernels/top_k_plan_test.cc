#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/plan/plan.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/top_k_constants.h"
#include "tests/kernels/plans.h"

namespace opmill {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

TEST(PlanTopK, SearchesTheBlocksOfTheBestKeysForFewOfMany) {
  EXPECT_THAT(Entries(Plan(TopKDesc{.input = Tensor({1000, 8192}), .axis = 1, .k = 10})),
              ElementsAre("BestOfBlocks", "KeepBest", "KeepBest", "WriteResults"));
}

TEST(PlanTopK, PicksTheLayoutThatMemoryWants) {
  constexpr uint32_t kRows = 0, kColumns = 1, kStrided = 2;
  struct LayoutCase {
    TensorDesc input;
    uint32_t axis;
    uint32_t layout;
  };
  const std::vector<LayoutCase> cases = {
      {Tensor({64, 4096}), 1, kRows},
      {Tensor({63, 4095}), 1, kRows},
      {Tensor({4096, 64}), 0, kColumns},
      {Tensor({2, 4096, 64}), 1, kColumns},
      {Tensor({4096, 63}), 0, kStrided},
      {Tensor({4096, 2}), 0, kStrided},
      {Tensor({4096, 64}, DataType::kInt64), 0, kStrided},
      {Tensor({64, 4096}, DataType::kFloat32, {8192, 2}), 1, kStrided},
      {Tensor({4096, 64}, DataType::kFloat32, {1, 4096}), 0, kRows},
  };
  for (const LayoutCase& c : cases) {
    const OperatorPlan plan = Plan(TopKDesc{.input = c.input, .axis = c.axis, .k = 10});
    SCOPED_TRACE(ToString(c.input));
    EXPECT_EQ(plan.kernels[0].entry, "BestOfBlocks");
    EXPECT_EQ(Macro(plan.kernels[0], "LAYOUT"), c.layout);
  }
}

TEST(PlanTopK, ReadsEveryElementOnceInATournament) {
  const OperatorPlan plan = Plan(TopKDesc{.input = Tensor({1 << 24}), .axis = 0, .k = 1000});
  const uint64_t scratch_records = plan.scratch_bytes / kVectorBytes;
  EXPECT_LT(scratch_records, uint64_t{1} << 21) << "far fewer candidates than elements";
}

TEST(PlanTopK, KeepsUpToThirtyTwoInLanes) {
  const auto second = [](const TensorDesc& input, uint32_t axis, uint32_t k) {
    return Entries(Plan(TopKDesc{.input = input, .axis = axis, .k = k}))[1];
  };
  const TensorDesc rows = Tensor({64, 8192}), columns = Tensor({8192, 64});
  EXPECT_EQ(second(rows, 1, 16), "KeepBest");
  EXPECT_EQ(second(rows, 1, 17), "FindCut") << "which is faster in long rows";
  EXPECT_EQ(second(Tensor({8, 8192}), 1, 32), "KeepBest") << "of which there must be enough";
  EXPECT_EQ(second(Tensor({8, 8192}), 1, 33), "FindCut");
  EXPECT_EQ(second(columns, 0, 32), "KeepBest");
  EXPECT_EQ(second(columns, 0, 33), "FindCut");
}

TEST(PlanTopK, WritesWhatALaneFindsInAWholeSequenceAtOnce) {
  const auto entries = [](const TensorDesc& input, uint32_t axis, uint32_t k,
                          PlanOptions options = Software()) {
    return Entries(Plan(TopKDesc{.input = input, .axis = axis, .k = k}, options));
  };
  EXPECT_THAT(entries(Tensor({999, 16}), 1, 10), ElementsAre("KeepBest"));
  EXPECT_THAT(entries(Tensor({1 << 20, 8}), 1, 8, {}), ElementsAre("KeepBest"));
  EXPECT_THAT(entries(Tensor({999, 1024}), 1, 32), ElementsAre("KeepBest"));
  EXPECT_THAT(entries(Tensor({128, 999}), 0, 4), ElementsAre("KeepBest"));
  EXPECT_THAT(entries(Tensor({999, 1025}), 1, 16),
              ElementsAre("BestOfBlocks", "KeepBest", "KeepBest", "WriteResults"));
  EXPECT_THAT(entries(Tensor({136, 1000}), 0, 4),
              ElementsAre("BestOfBlocks", "KeepBest", "KeepBest", "WriteResults"))
      << "columns";
  EXPECT_THAT(entries(Tensor({999, 128}), 1, 33), ElementsAre("RankElements"))
      << "more than a lane keeps";
  EXPECT_THAT(entries(Tensor({1, 1000}), 1, 5), ElementsAre("KeepBest"));
  PlanOptions hardware = Software();
  hardware.prefers_wide_rows = true;
  EXPECT_THAT(entries(Tensor({999, 64}), 1, 32, hardware), ElementsAre("KeepBest"));
  EXPECT_EQ(entries(Tensor({999, 1024}), 1, 4, hardware)[0], "BestOfBlocks") << "read side by side";
  PlanOptions small = Software();
  small.max_view_elements = 1024;
  EXPECT_THAT(entries(Tensor({1, 900}, DataType::kFloat32, {16384, 16}), 1, 3, small),
              Contains("WriteResults"))
      << "in parts";
}

TEST(PlanTopK, GivesLanesSeveralShortSequencesWhereTheyAreMany) {
  const auto walk = [](const TensorDesc& input) {
    return Plan(TopKDesc{.input = input, .axis = 1, .k = 4}, Software()).passes[0].dispatches[0];
  };
  const Dispatch many = walk(Tensor({1048576, 16}));
  EXPECT_EQ(many.constants.groups().lane_units, 64u);
  EXPECT_EQ(uint64_t{many.groups[0]} * many.groups[1], 1048576u / 8 / 64);
  EXPECT_EQ(walk(Tensor({1048576, 64})).constants.groups().lane_units, 16u);
  EXPECT_EQ(walk(Tensor({1024, 16})).constants.groups().lane_units, 2u);
  EXPECT_EQ(walk(Tensor({512, 16})).constants.groups().lane_units, 1u);
}

TEST(PlanTopK, CutsUpToHalfOfASequence) {
  const auto first = [](uint32_t length, uint32_t k) {
    return Entries(Plan(TopKDesc{.input = Tensor({64, length}), .axis = 1, .k = k}))[0];
  };
  EXPECT_EQ(first(2048, 1024), "BestOfBlocks");
  EXPECT_EQ(first(2048, 1025), "KeepBest");
  EXPECT_EQ(first(128, 64), "RankElements") << "too short";
  EXPECT_EQ(first(1 << 20, 1 << 19), "BestOfBlocks");
  EXPECT_EQ(first(1 << 21, 1 << 20), "KeepBest") << "too long";
}

TEST(PlanTopK, SortsInNoMoreScratchThanItsShare) {
  for (const uint32_t k : {17u, 100u, 1000u, 4096u, 8192u}) {
    const OperatorPlan plan = Plan(TopKDesc{.input = Tensor({4096, 8192}), .axis = 1, .k = k});
    EXPECT_LE(plan.scratch_bytes, uint64_t{160} << 20) << "k=" << k;
  }
}

TEST(PlanTopK, CollectsWithoutIdleLanes) {
  for (const TopKDesc& desc : {TopKDesc{.input = Tensor({1000, 8192}), .axis = 1, .k = 100},
                               TopKDesc{.input = Tensor({8192, 1000}), .axis = 0, .k = 100}}) {
    const OperatorPlan plan = Plan(desc, Software());
    uint64_t tested = 0, lanes = 0;
    for (const Pass& pass : plan.passes) {
      for (const Dispatch& dispatch : pass.dispatches) {
        if (plan.kernels[dispatch.kernel].entry != "CollectAbove") continue;
        const uint64_t window = desc.axis == 1 ? 128 : 32;
        lanes += uint64_t{dispatch.groups[0]} * dispatch.groups[1] * Software().threads;
        tested += dispatch.constants.groups().unit_count;
        const auto collect = dispatch.constants.As<TopKCollectConstants>();
        EXPECT_GE(collect.sequence_lanes * collect.lane_windows * window, 8192u);
      }
    }
    EXPECT_GT(tested, 0u);
    EXPECT_LT(lanes, tested + tested / 8);
  }
}

TEST(PlanTopK, MakesRoomForTheRunsOfEveryPart) {
  // Rows are too far apart for one view: each is a part with its own run.
  PlanOptions options;
  options.max_view_elements = 4096;
  options.threads = 256;
  options.parallel_groups = 512;
  const TopKDesc desc = {.input = Tensor({3, 70001}, DataType::kInt16), .axis = 0, .k = 3};
  for (const Pass& pass : Plan(desc, options).passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      EXPECT_LE(dispatch.writes[0].element_count, options.max_view_elements);
    }
  }
}

TEST(PlanTopK, MergesRunsUntilOneIsLeft) {
  EXPECT_THAT(Entries(Plan(TopKDesc{.input = Tensor({3700}), .axis = 0, .k = 3700})),
              ElementsAre("KeepBest", "MergeRuns", "MergeRuns", "MergeRuns", "MergeRuns",
                          "MergeRuns", "MergeRuns", "MergeRuns", "WriteResults"));
}

TEST(PlanTopK, RanksShortSequencesOfWhichManyAreWanted) {
  const auto entries = [](const TensorDesc& input, uint32_t axis, uint32_t k) {
    return Entries(Plan(TopKDesc{.input = input, .axis = axis, .k = k}, Software()));
  };
  EXPECT_THAT(entries(Tensor({999, 512}), 1, 180), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({999, 512}), 1, 170)[0], "BestOfBlocks") << "a cut is faster";
  EXPECT_THAT(entries(Tensor({3500}), 0, 3500), ElementsAre("RankElements"));
  EXPECT_THAT(entries(Tensor({262144, 64}), 1, 64), Each("RankElements")) << "in slices";
  EXPECT_EQ(entries(Tensor({3501}), 0, 3501)[0], "KeepBest") << "merges are faster";
  EXPECT_THAT(entries(Tensor({99, 256}, DataType::kInt64), 1, 113), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({99, 256}, DataType::kInt64), 1, 112)[0], "BestOfBlocks") << "wide";
  EXPECT_THAT(entries(Tensor({128, 99}), 0, 37), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({128, 99}), 0, 36)[0], "BestOfBlocks") << "elements apart";
}

TEST(PlanTopK, RanksWhereFewElementsStandBesideOneAnother) {
  const auto entries = [](const TensorDesc& input, uint32_t axis, uint32_t k) {
    return Entries(Plan(TopKDesc{.input = input, .axis = axis, .k = k}, Software()));
  };
  EXPECT_THAT(entries(Tensor({1448}), 0, 33), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({1449}), 0, 33)[0], "BestOfBlocks") << "a cut is faster";
  EXPECT_THAT(entries(Tensor({32, 256}), 1, 33), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({33, 256}), 1, 33)[0], "BestOfBlocks") << "of all sequences";
  EXPECT_EQ(entries(Tensor({1448}), 0, 32)[0], "BestOfBlocks") << "lanes keep them";
  EXPECT_THAT(entries(Tensor({724}, DataType::kInt64), 0, 33), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({725}, DataType::kInt64), 0, 33)[0], "BestOfBlocks") << "wide";
  EXPECT_THAT(entries(Tensor({256, 16}), 0, 33), ElementsAre("RankElements"));
  EXPECT_EQ(entries(Tensor({256, 17}), 0, 33)[0], "BestOfBlocks") << "elements apart";
}

TEST(PlanTopK, SelectsByLanesAloneWhereTheyAreEnoughOrHaveLittleToSearch) {
  const auto entries = [](const TensorDesc& input, uint32_t axis, uint32_t k,
                          const PlanOptions& options = Software()) {
    return Entries(Plan(TopKDesc{.input = input, .axis = axis, .k = k}, options));
  };
  const auto alone =
      ElementsAre("BestOfBlocks", "FindCut", "CollectAbove", "TakeBest", "RankElements");
  const auto shared = Contains("SpreadCandidates");
  EXPECT_THAT(entries(Tensor({256, 8192}), 1, 100), alone);
  EXPECT_THAT(entries(Tensor({4, 1024, 64}), 1, 100), alone) << "columns";
  EXPECT_THAT(entries(Tensor({1, 50257}), 1, 100), alone) << "little to search";
  EXPECT_THAT(entries(Tensor({1, 1 << 26}), 1, 100), shared) << "much to search";
  EXPECT_THAT(entries(Tensor({16, 1 << 22}), 1, 100), alone) << "by lanes enough";
  EXPECT_THAT(entries(Tensor({256, 8192}), 1, 1024), alone);
  EXPECT_THAT(entries(Tensor({256, 8192}), 1, 1025), shared) << "too many to rank";
  EXPECT_THAT(entries(Tensor({256, 8192}, DataType::kUint64), 1, 320), alone);
  EXPECT_THAT(entries(Tensor({256, 8192}, DataType::kUint64), 1, 321), shared) << "wide";
  PlanOptions other = Software();
  other.prefers_wide_rows = true;
  EXPECT_THAT(entries(Tensor({256, 8192}), 1, 100, other), shared) << "hardware";
  other = Software();
  other.max_view_elements = 1 << 17;
  EXPECT_THAT(entries(Tensor({256, 8192}), 1, 100, other), shared) << "too many words for a view";
  other.max_view_elements = 2400;
  EXPECT_THAT(entries(Tensor({2, 5001}, DataType::kInt64), 1, 33, other), Contains("WriteResults"))
      << "in parts";
}

TEST(PlanTopK, TakesFourColumnsALaneWhereItSelectsAlone) {
  const auto collect = [](DataType type) {
    const TensorDesc input = Tensor({3, 2000, 40}, type, {96000, 48, 1});
    const OperatorPlan plan = Plan(TopKDesc{.input = input, .axis = 1, .k = 50}, Software());
    return plan.passes[2].dispatches[0].constants.groups().unit_count;
  };
  EXPECT_EQ(collect(DataType::kFloat32), 3u * 10);
  EXPECT_EQ(collect(DataType::kFloat16), 3u * 10);
  EXPECT_EQ(collect(DataType::kInt8), 3u * 12) << "of which the last vector has eight";
  EXPECT_EQ(collect(DataType::kInt64), 3u * 40) << "elements apart";
}

TEST(PlanTopK, StoresSecondBestKeysOfColumnsForLanesThatKeep) {
  const auto runners = [](uint32_t k) {
    const OperatorPlan plan =
        Plan(TopKDesc{.input = Tensor({3, 2000, 40}), .axis = 1, .k = k}, Software());
    const Dispatch& keys = plan.passes[0].dispatches[0];
    EXPECT_EQ(Macro(plan.kernels[keys.kernel], "RUNNERS"), keys.writes[1].element_count > 0);
    return keys.writes[1].element_count;
  };
  EXPECT_GT(runners(32), 0u);
  EXPECT_EQ(runners(33), 0u);
}

TEST(PlanTopK, RanksSequencesSideBySide) {
  const auto walk = [](const TensorDesc& input) {
    return Plan(TopKDesc{.input = input, .axis = 1, .k = 40}, Software()).passes[0].dispatches[0];
  };
  // Of 16 slots each, of which up to 3 are before the row: 8 lanes, or as many as sequences.
  EXPECT_EQ(walk(Tensor({20, 64})).constants.groups().unit_count, 24u * 4);
  EXPECT_EQ(walk(Tensor({20, 63})).constants.groups().unit_count, 24u * 5);
  EXPECT_EQ(walk(Tensor({3, 64})).constants.groups().unit_count, 3u * 4);
  EXPECT_EQ(walk(Tensor({3, 64})).constants.As<TopKRankConstants>().side_by_side, 3u);
  EXPECT_EQ(walk(Tensor({262144, 64})).constants.groups().lane_units, 16u);
}

TEST(PlanTopK, MergesInTwoListsHoweverManyPasses) {
  // 2^15 runs of 32, halved 15 times: two lists of 2^20 records, not one per pass.
  EXPECT_EQ(Plan(TopKDesc{.input = Tensor({1 << 20}), .axis = 0, .k = 1 << 20}).scratch_bytes,
            uint64_t{2} * (1 << 20) * 16);
}

TEST(PlanTopK, WritesListsWordByWordWhereTheDeviceIsAProcessor) {
  const auto written = [](const PlanOptions& options) {
    const OperatorPlan plan = Plan(TopKDesc{.input = Tensor({5000}), .axis = 0, .k = 7}, options);
    const Dispatch& keep = plan.passes[1].dispatches[0];
    EXPECT_EQ(plan.kernels[keep.kernel].entry, "KeepBest");
    EXPECT_EQ(Macro(plan.kernels[keep.kernel], "STORES_WORDS"),
              keep.writes[0].format == ViewFormat::kUint32 ? 1u : 0u);
    EXPECT_EQ(plan.passes[2].dispatches[0].reads[1].format, ViewFormat::kVector);
    return keep.writes[0];
  };
  PlanOptions options = Software();
  EXPECT_EQ(written(options).format, ViewFormat::kUint32);
  options.prefers_wide_rows = true;
  EXPECT_EQ(written(options).format, ViewFormat::kVector);

  // Too many words for a view, but not too many records.
  const OperatorDesc long_lists = TopKDesc{.input = Tensor({5000}), .axis = 0, .k = 3000};
  options = Software();
  options.max_view_elements = 8192;
  const OperatorPlan plan = Plan(long_lists, options);
  const Dispatch& runs = plan.passes[0].dispatches[0];
  EXPECT_EQ(runs.writes[0].format, ViewFormat::kVector);
  EXPECT_EQ(Macro(plan.kernels[runs.kernel], "STORES_WORDS"), 0u);
}

TEST(PlanTopK, RefusesMoreCandidatesThanOneViewHolds) {
  PlanOptions options;
  options.max_view_elements = 4096;
  const absl::Status status =
      TryPlan(TopKDesc{.input = Tensor({10000}), .axis = 0, .k = 10000}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "top_k with k (10000) of 10000 elements sorts 10080 candidates at once; the limit is "
            "4096.");
}

}  // namespace
}  // namespace opmill
