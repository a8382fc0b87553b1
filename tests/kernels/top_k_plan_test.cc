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

PlanOptions OnHardware() {
  PlanOptions options;
  options.threads = 256;
  options.parallel_groups = 512;
  return options;
}

OperatorPlan TopKPlan(const TensorDesc& input, uint32_t axis, uint32_t k,
                      const PlanOptions& options = OnHardware()) {
  return Plan(TopKDesc{.input = input, .axis = axis, .k = k}, options);
}

std::vector<std::string> EntriesOf(const TensorDesc& input, uint32_t axis, uint32_t k,
                                   const PlanOptions& options = OnHardware()) {
  return Entries(TopKPlan(input, axis, k, options));
}

uint64_t GroupsOf(const Dispatch& dispatch) {
  return uint64_t{dispatch.groups[0]} * dispatch.groups[1];
}

TEST(PlanTopK, SortsShortSequencesAtOnce) {
  EXPECT_THAT(EntriesOf(Tensor({999, 16}), 1, 10), ElementsAre("SortSequences"));
  EXPECT_THAT(EntriesOf(Tensor({1 << 20, 24}), 1, 17), ElementsAre("SortSequences"));
  EXPECT_THAT(EntriesOf(Tensor({64, 1 << 20}), 0, 17), ElementsAre("SortSequences")) << "columns";
  EXPECT_THAT(EntriesOf(Tensor({999, 64}), 1, 1), ElementsAre("SortSequences"));
  EXPECT_THAT(EntriesOf(Tensor({999, 65}), 1, 1), ElementsAre("SelectBest"));
  EXPECT_THAT(EntriesOf(Tensor({999, 2048}), 1, 2048), ElementsAre("SortSequences"));
  EXPECT_THAT(EntriesOf(Tensor({999, 2048}), 1, 513), ElementsAre("SortSequences"));
  EXPECT_THAT(EntriesOf(Tensor({999, 2048}), 1, 512), ElementsAre("SelectBest"));
  EXPECT_THAT(EntriesOf(Tensor({999, 1024}, DataType::kInt64), 1, 1024),
              ElementsAre("SortSequences"));
  EXPECT_EQ(EntriesOf(Tensor({999, 1025}, DataType::kInt64), 1, 1025)[0], "CountDigits") << "wide";
}

TEST(PlanTopK, GivesAGroupSeveralShortSequencesWhereTheyAreMany) {
  const auto sort = [](const TensorDesc& input, uint32_t axis) {
    return TopKPlan(input, axis, 17).passes[0].dispatches[0];
  };
  const auto rows = [&](const TensorDesc& input) {
    return 1u << sort(input, 1).constants.As<TopKSortConstants>().row_bits;
  };
  EXPECT_EQ(rows(Tensor({1 << 20, 32})), 64u);
  EXPECT_EQ(rows(Tensor({1 << 20, 33})), 32u);
  EXPECT_EQ(rows(Tensor({1 << 20, 17}, DataType::kInt64)), 32u);
  EXPECT_EQ(rows(Tensor({1024, 32})), 2u) << "enough groups come first";
  EXPECT_EQ(rows(Tensor({100, 32})), 1u);
  EXPECT_EQ(GroupsOf(sort(Tensor({1000000, 32}), 1)), (1000000u + 63) / 64);
  EXPECT_EQ(sort(Tensor({1000, 32}), 1).constants.As<TopKSortConstants>().goes_across, 0u);
  EXPECT_EQ(sort(Tensor({32, 1000}), 0).constants.As<TopKSortConstants>().goes_across, 1u);
}

TEST(PlanTopK, WalksShortSequencesOfWhichRegistersHoldTheBest) {
  const auto enough = static_cast<uint32_t>(OnHardware().parallel_lanes() / 8);
  const auto walks = [](const TensorDesc& input, uint32_t axis, uint32_t k) {
    return EntriesOf(input, axis, k) == std::vector<std::string>{"WalkChunks"};
  };
  EXPECT_TRUE(walks(Tensor({enough, 256}), 1, 16));
  EXPECT_FALSE(walks(Tensor({enough - 1, 256}), 1, 16)) << "groups share the work better";
  EXPECT_FALSE(walks(Tensor({enough, 257}), 1, 16));
  EXPECT_FALSE(walks(Tensor({enough, 256}), 1, 17));
  EXPECT_TRUE(walks(Tensor({256, enough}), 0, 16)) << "columns";
  EXPECT_TRUE(walks(Tensor({enough, 64}, DataType::kInt8), 1, 1));
  EXPECT_TRUE(walks(Tensor({enough, 64}, DataType::kInt64), 1, 16));
  const auto kept = [&](uint32_t k) {
    return Macro(TopKPlan(Tensor({enough, 64}), 1, k).kernels[0], "BEST_COUNT");
  };
  EXPECT_EQ(kept(1), 4u);
  EXPECT_EQ(kept(10), 12u);
  EXPECT_EQ(kept(16), 16u);
  const OperatorPlan plan = TopKPlan(Tensor({1000000, 64}), 1, 10);
  EXPECT_EQ(GroupsOf(plan.passes[0].dispatches[0]), (1000000u + 255) / 256);
}

TEST(PlanTopK, WalksShortListsOfRows) {
  EXPECT_THAT(EntriesOf(Tensor({40000, 10000}), 1, 10), ElementsAre("SelectBest", "WalkChunks"));
  EXPECT_THAT(EntriesOf(Tensor({40000, 10000}), 1, 17), ElementsAre("SelectBest", "SelectBest"));
}

TEST(PlanTopK, WalksChunksOfLongColumns) {
  const OperatorPlan plan = TopKPlan(Tensor({8192, 2048}), 0, 10);
  ASSERT_THAT(Entries(plan), ElementsAre("WalkChunks", "SelectBest"));
  const auto walk = plan.passes[0].dispatches[0].constants.As<TopKChunkConstants>();
  EXPECT_EQ(walk.chunks, 32u);
  EXPECT_EQ(walk.chunk_length, 256u);
  EXPECT_EQ(walk.items.stride, 2048u);
  EXPECT_EQ(walk.record_stride, 320u);
  const auto last = plan.passes[1].dispatches[0].constants.As<TopKChunkConstants>();
  EXPECT_EQ(last.items.length, 320u);
  EXPECT_EQ(last.items.stride, 320u);
  EXPECT_THAT(EntriesOf(Tensor({64, 1024, 1024}), 1, 10), ElementsAre("WalkChunks", "WalkChunks"))
      << "then short lists";
  EXPECT_THAT(EntriesOf(Tensor({8192, 2048}), 0, 17), ElementsAre("GatherRows", "SelectBest"));
  EXPECT_THAT(EntriesOf(Tensor({8192, 2048}, DataType::kInt8), 0, 10),
              ElementsAre("WalkChunks", "SelectBest"))
      << "bytes";
  EXPECT_THAT(EntriesOf(Tensor({1 << 20, 31}), 0, 10), Contains("GatherRows"))
      << "too few adjacent columns";
  EXPECT_THAT(EntriesOf(Tensor({1 << 23, 32}), 0, 16), Contains("GatherRows"))
      << "a slice would have too few columns";
  EXPECT_THAT(EntriesOf(Tensor({512, 1024}), 0, 10), ElementsAre("GatherRows", "SelectBest"))
      << "too few lanes";
}

TEST(PlanTopK, SelectsFromRowsInOnePassWithoutScratch) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kFloat16, DataType::kInt8, DataType::kInt64}) {
    for (const uint32_t k : {10u, 100u, 1000u}) {
      const OperatorPlan plan = TopKPlan(Tensor({8192, 4096}, type), 1, k);
      EXPECT_THAT(Entries(plan), ElementsAre("SelectBest")) << ToString(type) << " k=" << k;
      EXPECT_EQ(plan.scratch_bytes, 0u);
    }
  }
}

TEST(PlanTopK, SelectsFromOneLongSequenceInFewPasses) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kFloat16, DataType::kInt8, DataType::kInt64}) {
    for (const uint32_t k : {1u, 10u, 100u, 1000u}) {
      const OperatorPlan plan = TopKPlan(Tensor({1, 1 << 26}, type), 1, k);
      SCOPED_TRACE(testing::Message() << ToString(type) << " k=" << k);
      EXPECT_LE(plan.passes.size(), 8u) << "one of them may fill the end of an output";
      EXPECT_THAT(Entries(plan), Each("SelectBest"));
      const size_t first = plan.passes[0].dispatches.empty() ? 1 : 0;
      EXPECT_GE(GroupsOf(plan.passes[first].dispatches[0]), 512u) << "too few to fill a GPU";
      EXPECT_LE(plan.scratch_bytes, uint64_t{360} << 20);
    }
  }
  EXPECT_EQ(TopKPlan(Tensor({1, 1 << 26}), 1, 10).passes.size(), 3u);
  EXPECT_EQ(TopKPlan(Tensor({1, 1 << 26}), 1, 1000).passes.size(), 6u);
}

TEST(PlanTopK, ListsTheBestOfChunksInTheOrderOfPositions) {
  // Four chunks of a sequence; what is left of each follows what is left of the one before.
  const OperatorPlan plan = TopKPlan(Tensor({3, 25000}), 1, 100);
  ASSERT_THAT(Entries(plan), ElementsAre("SelectBest", "SelectBest"));
  const auto first = plan.passes[0].dispatches[0].constants.As<TopKChunkConstants>();
  EXPECT_EQ(first.chunks, 4u);
  EXPECT_EQ(first.chunk_length, 6256u);
  EXPECT_EQ(first.record_stride, 400u);
  const auto second = plan.passes[1].dispatches[0].constants.As<TopKChunkConstants>();
  EXPECT_EQ(second.items.length, 400u);
  EXPECT_EQ(second.items.stride, 400u);
  EXPECT_EQ(second.chunks, 1u);
}

TEST(PlanTopK, HasChunksThatRegistersHold) {
  const auto select = [](const TensorDesc& input, uint32_t k) {
    const OperatorPlan plan = TopKPlan(input, 1, k);
    const Dispatch& dispatch = plan.passes[0].dispatches[0];
    return std::pair(Macro(plan.kernels[dispatch.kernel], "THREADS"),
                     dispatch.constants.As<TopKChunkConstants>().chunk_length);
  };
  EXPECT_EQ(select(Tensor({64, 8192}), 10), std::pair(512u, 8192u));
  EXPECT_EQ(select(Tensor({64, 8192}, DataType::kInt8), 10), std::pair(128u, 8192u));
  EXPECT_EQ(select(Tensor({64, 8192}, DataType::kInt8), 2000), std::pair(512u, 8192u))
      << "as many lanes as the sort needs";
  EXPECT_EQ(select(Tensor({64, 4095}), 10), std::pair(512u, 4096u)) << "which start inside vectors";
  EXPECT_EQ(select(Tensor({64, 1024}), 10), std::pair(64u, 1024u));
  EXPECT_EQ(select(Tensor({64, 65}), 10), std::pair(64u, 80u));
  EXPECT_EQ(select(Tensor({1, 1 << 20}), 10), std::pair(512u, 8192u));
  EXPECT_EQ(select(Tensor({1, 1 << 20}, DataType::kInt64), 10), std::pair(512u, 4096u));
}

TEST(PlanTopK, FindsAFloorWhereItIsWorthIt) {
  const auto leaders = [](const TensorDesc& input, uint32_t k) {
    return TopKPlan(input, 1, k).passes[0].dispatches[0].constants.As<TopKChunkConstants>().leaders;
  };
  EXPECT_EQ(leaders(Tensor({64, 8192}), 128), 512u) << "one for each lane";
  EXPECT_EQ(leaders(Tensor({64, 8192}), 129), 2048u) << "one for each vector";
  EXPECT_EQ(leaders(Tensor({64, 8192}), 1000), 2048u);
  EXPECT_EQ(leaders(Tensor({64, 5712}), 1000), 0u) << "too many would reach it";
  EXPECT_EQ(leaders(Tensor({64, 8192}), 1366), 0u) << "there is no room for them";
  EXPECT_EQ(leaders(Tensor({64, 1024}), 100), 256u);
}

TEST(PlanTopK, GathersElementsThatAreApart) {
  EXPECT_THAT(EntriesOf(Tensor({8192, 2048}), 0, 100), ElementsAre("GatherRows", "SelectBest"));
  EXPECT_THAT(EntriesOf(Tensor({16, 4096, 256}), 1, 1000), ElementsAre("GatherRows", "SelectBest"));
  EXPECT_THAT(EntriesOf(Tensor({64, 4096}, DataType::kFloat32, {8192, 2}), 1, 10),
              ElementsAre("GatherRows", "SelectBest"));
  EXPECT_THAT(EntriesOf(Tensor({4096, 64}, DataType::kFloat32, {1, 4096}), 0, 10),
              ElementsAre("SelectBest"))
      << "rows, transposed";
  EXPECT_THAT(EntriesOf(Tensor({63, 4095}), 1, 10), ElementsAre("SelectBest"))
      << "rows that start inside vectors";
  EXPECT_LE(TopKPlan(Tensor({8192, 1 << 16}), 0, 100).scratch_bytes, uint64_t{64} << 20)
      << "in slices";
}

TEST(PlanTopK, GathersALongSequencePieceByPiece) {
  const OperatorPlan plan = TopKPlan(Tensor({1, 1u << 31}, DataType::kFloat32, {0, 0}), 1, 100);
  // 100 records of 8 bytes for each chunk of 8176 elements or a few less, and then for each chunk
  // of 8192 records.
  const uint64_t list = (uint64_t{1} << 31) / 8128 * 100 * 8;
  EXPECT_LE(plan.scratch_bytes, (uint64_t{64} << 20) + list + list / 64);
  uint64_t elements = 0;
  for (const Pass& pass : plan.passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      if (Macro(plan.kernels[dispatch.kernel], "DATA_TYPE") != 1) continue;  // gathers words
      if (Macro(plan.kernels[dispatch.kernel], "SOURCE") != SOURCE_ELEMENTS) continue;
      const auto select = dispatch.constants.As<TopKChunkConstants>();
      EXPECT_EQ(select.items.first_position, elements);
      elements += select.items.length;
    }
  }
  EXPECT_EQ(elements, uint64_t{1} << 31);
}

TEST(PlanTopK, SortsByRadixWhatNoGroupCanSort) {
  EXPECT_THAT(EntriesOf(Tensor({3, 5000}, DataType::kInt16), 1, 2049),
              ElementsAre("CountDigits", "ScanCounts", "ScatterItems", "CountDigits", "ScanCounts",
                          "ScatterItems"));
  EXPECT_THAT(EntriesOf(Tensor({3, 5000}), 1, 2048), ElementsAre("SelectBest"));
  EXPECT_EQ(TopKPlan(Tensor({5000}, DataType::kUint8), 0, 5000).passes.size(), 3u);
  EXPECT_EQ(TopKPlan(Tensor({5000}), 0, 5000).passes.size(), 12u);
  EXPECT_EQ(TopKPlan(Tensor({5000}, DataType::kInt64), 0, 5000).passes.size(), 24u);
  EXPECT_EQ(EntriesOf(Tensor({5000, 3}), 0, 5000)[0], "GatherRows");
}

TEST(PlanTopK, SortsInTwoListsOfAllElements) {
  const uint64_t lists = uint64_t{2} * (1 << 20) * 8;
  const uint64_t scratch = TopKPlan(Tensor({1 << 20}), 0, 1 << 20).scratch_bytes;
  EXPECT_GE(scratch, lists);
  EXPECT_LE(scratch, lists + lists / 50) << "the counts";
}

TEST(PlanTopK, SortsInNoMoreScratchThanItsShare) {
  for (const uint32_t k : {17u, 100u, 1000u, 4096u, 8192u}) {
    const OperatorPlan plan = TopKPlan(Tensor({4096, 8192}), 1, k);
    EXPECT_LE(plan.scratch_bytes, uint64_t{160} << 20) << "k=" << k;
  }
}

TEST(PlanTopK, SortsSequencesOfAnyLength) {
  for (const uint32_t bits : {27u, 28u, 29u}) {
    const uint32_t length = 1u << bits;
    const OperatorPlan plan = TopKPlan(Tensor({length}), 0, length);
    EXPECT_LE(plan.scratch_bytes, uint64_t{17} << bits) << "two records of 8 bytes an element";
    EXPECT_EQ(plan.passes.size(), 12u);
    uint64_t ranks = 0;
    for (const Dispatch& scatter : plan.passes.back().dispatches) {
      const auto constants = scatter.constants.As<TopKChunkConstants>();
      if (constants.first_chunk == 0) ranks += constants.ranks.count;
    }
    EXPECT_EQ(ranks, length);
  }
}

TEST(PlanTopK, MovesItemsIntoEachViewOfALongList) {
  PlanOptions options = OnHardware();
  options.max_view_elements = 16384;
  const OperatorPlan plan = TopKPlan(Tensor({40000}), 0, 40000, options);
  uint64_t moved = 0;
  for (const Dispatch& scatter : plan.passes[2].dispatches) {
    EXPECT_EQ(plan.kernels[scatter.kernel].entry, "ScatterItems");
    EXPECT_LE(scatter.writes[0].element_count, options.max_view_elements);
    const auto c = scatter.constants.As<TopKChunkConstants>();
    moved += uint64_t{c.items.length} * c.ranks.count;
  }
  EXPECT_EQ(moved, uint64_t{40000} * 40000);
}

TEST(PlanTopK, MakesRoomForTheBestOfEveryPart) {
  // Rows are too far apart for one view: each is a part of its own.
  PlanOptions options = OnHardware();
  options.max_view_elements = 4096;
  const TopKDesc desc = {.input = Tensor({20, 70001}, DataType::kInt64), .axis = 0, .k = 17};
  const OperatorPlan plan = Plan(desc, options);
  EXPECT_THAT(Entries(plan), Contains("GatherRows"));
  for (const Pass& pass : plan.passes) {
    for (const Dispatch& dispatch : pass.dispatches) {
      EXPECT_LE(dispatch.writes[0].element_count, options.max_view_elements);
    }
  }
}

TEST(PlanTopK, MakesRoomForElementsThatTheInputRepeats) {
  // A sequence of one element takes no part of a view before it is gathered.
  PlanOptions options = OnHardware();
  options.max_view_elements = 256;
  const TensorDesc repeated = {DataType::kInt8, {1, 70001}, {1, 0}};
  for (const uint32_t k : {1u, 31u, 128u}) {
    const OperatorPlan plan = Plan(TopKDesc{.input = repeated, .axis = 1, .k = k}, options);
    for (const Pass& pass : plan.passes) {
      for (const Dispatch& dispatch : pass.dispatches) {
        EXPECT_LE(dispatch.reads[0].element_count, options.max_view_elements) << "k=" << k;
        EXPECT_LE(dispatch.writes[0].element_count, options.max_view_elements) << "k=" << k;
      }
    }
  }
  // Passes over lists shorten them if a view holds the best of two chunks.
  EXPECT_EQ(TryPlan(TopKDesc{.input = repeated, .axis = 1, .k = 129}, options).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(PlanTopK, HasShortChunksForSmallGroups) {
  EXPECT_THAT(EntriesOf(Tensor({5000}), 0, 7, Software()), ElementsAre("SelectBest", "SelectBest"));
  // The registers of 32 lanes hold 512 elements: lists of 12800, 2500 and 500 records.
  EXPECT_THAT(EntriesOf(Tensor({1 << 16}), 0, 100, Software()),
              ElementsAre("SelectBest", "SelectBest", "SelectBest", "SelectBest"));
}

TEST(PlanTopK, RefusesListsThatViewsDoNotHold) {
  PlanOptions options = OnHardware();
  options.max_view_elements = 1024;
  const absl::Status status =
      TryPlan(TopKDesc{.input = Tensor({10000}), .axis = 0, .k = 10000}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "top_k with k (10000) of 10000 elements has lists that do not fit into views of 1024 "
            "elements.");
}

}  // namespace
}  // namespace opmill
