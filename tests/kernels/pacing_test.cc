// Where plans are split, and how their speed is learned.
#include "kernels/d3d12/queue/pacing.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/operators/reduction/reduction_desc.h"

namespace opmill {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr SubmissionRoom kPlenty = {.dispatches = 1000, .seconds = 1e9};

// Two passes of two dispatches with `columns` * `rows` groups each; the last one uses kernel 1.
OperatorPlan Plan(uint32_t columns, uint32_t rows, uint64_t input_bytes) {
  OperatorPlan plan;
  plan.kernels.resize(2);
  plan.passes.resize(2);
  Dispatch dispatch;
  dispatch.groups = {columns, rows};
  for (Pass& pass : plan.passes) pass.dispatches = {dispatch, dispatch};
  plan.passes[1].dispatches[1].kernel = 1;
  plan.input_bytes = {input_bytes};
  return plan;
}

// All split points of a plan, with this much room each.
std::vector<PlanCursor> Cuts(const OperatorPlan& plan, const Pace& pace, SubmissionRoom room) {
  std::vector<PlanCursor> cuts;
  PlanCursor cursor;
  while (cursor.pass < plan.passes.size()) {
    SubmissionRoom rest = room;
    cursor = Advance(plan, pace, cursor, rest);
    cuts.push_back(cursor);
  }
  return cuts;
}

TEST(Pace, ExpectsASlowDeviceUntilItHasMeasured) {
  const OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  const Pace pace(Program(), plan);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), 1.0 / 400);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(1), 1.0 / 400);
}

// As in a radix sort: a scan of many small groups beside a scatter of few large ones.
TEST(Pace, ExpectsFewGroupsToTakeAsLongAsMany) {
  OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  plan.passes[1].dispatches[1].groups = {1, 1};
  const Pace pace(Program(), plan);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), 1.0 / 301);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(1), 0.25);
}

TEST(Pace, CountsTheWorkOfABroadcastInput) {
  const Program program = {.nodes = {{.desc = ReduceDesc{.input = {.data_type = DataType::kFloat32,
                                                                   .sizes = {16, 1 << 20},
                                                                   .strides = {0, 0}}}}}};
  const OperatorPlan plan = Plan(100, 1, RequiredBytes(program.nodes[0].desc.inputs[0]));
  EXPECT_DOUBLE_EQ(Pace(program, plan).GroupSeconds(0), 1.0 / 400);
}

TEST(Pace, LearnsLongTimesAtOnceAndShortOnesGradually) {
  const OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  Pace pace(Program(), plan);
  pace.Learn(plan, {0, 0, 0}, {0, 1, 0}, 0.4);  // the first measurement counts fully
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), 0.001);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(1), 1.0 / 400);
  pace.Learn(plan, {0, 1, 7}, {1, 0, 0}, 10);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), 0.01);
  pace.Learn(plan, {0, 0, 0}, {1, 1, 0}, 0.1);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), 0.00775);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(1), 1.0 / 400);
  pace.Learn(plan, {0, 0, 0}, {2, 0, 0}, 2);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), 0.0155);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(1), 1.0 / 200);
}

TEST(Pace, AddsUpWhatARangeTakes) {
  OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  plan.passes[1].fills = {{.size_bytes = 2'000'000'000}};
  const Pace pace(Program(), plan);
  EXPECT_NEAR(pace.Seconds(plan, {0, 0, 0}, {2, 0, 0}), 3, 1e-9);
  EXPECT_NEAR(pace.Seconds(plan, {0, 1, 50}, {1, 0, 0}), 0.125, 1e-9);
  EXPECT_NEAR(pace.Seconds(plan, {0, 1, 50}, {1, 0, 10}), 2.15, 1e-9);
  EXPECT_NEAR(pace.Seconds(plan, {1, 0, 10}, {1, 1, 0}), 0.225, 1e-9);
}

TEST(Pace, KnowsWhatItHasMeasured) {
  const OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  Pace pace(Program(), plan);
  EXPECT_FALSE(pace.IsMeasured(plan, {0, 0, 0}, {0, 0, 1}));
  pace.Learn(plan, {0, 0, 0}, {0, 0, 1}, 1);
  EXPECT_TRUE(pace.IsMeasured(plan, {0, 0, 0}, {1, 1, 0}));
  EXPECT_FALSE(pace.IsMeasured(plan, {1, 0, 99}, {1, 1, 1}));  // a group of kernel 1
  pace.Learn(plan, {1, 1, 0}, {2, 0, 0}, 1);
  EXPECT_TRUE(pace.IsMeasured(plan, {0, 0, 0}, {2, 0, 0}));
}

TEST(Pace, DoesNotLearnInterruptionsOfSmallWork) {
  const OperatorPlan plan = Plan(1, 1, 64 << 10);
  Pace pace(Program(), plan);
  const double expected = pace.GroupSeconds(0);
  pace.Learn(plan, {0, 0, 0}, {2, 0, 0}, 1000);
  EXPECT_DOUBLE_EQ(pace.GroupSeconds(0), expected);
  pace.Learn(plan, {0, 0, 0}, {2, 0, 0}, 0.5);
  EXPECT_LT(pace.GroupSeconds(0), expected);
}

TEST(Advance, TakesEverythingThatFits) {
  const OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  const Pace pace(Program(), plan);
  EXPECT_EQ(Cuts(plan, pace, kPlenty), (std::vector<PlanCursor>{{2, 0, 0}}));
  EXPECT_EQ(Cuts(plan, pace, {.dispatches = 3, .seconds = 1e9}),
            (std::vector<PlanCursor>{{1, 1, 0}, {2, 0, 0}}));
  // 400 groups per second.
  EXPECT_EQ(Cuts(plan, pace, {.dispatches = 1000, .seconds = 0.375}),
            (std::vector<PlanCursor>{{0, 1, 50}, {1, 1, 0}, {2, 0, 0}}));
}

TEST(Advance, TakesFromTheRoomWhatItNeeds) {
  const OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  SubmissionRoom room = kPlenty;
  Advance(plan, Pace(Program(), plan), {0, 1, 50}, room);
  EXPECT_EQ(room.dispatches, kPlenty.dispatches - 3);
  EXPECT_NEAR(kPlenty.seconds - room.seconds, 0.625, 1e-6);
}

TEST(Advance, AlwaysAdvances) {
  OperatorPlan plan = Plan(3, 1, 64 * kMebibyte);
  plan.passes[1].fills = {{.size_bytes = uint64_t{1} << 40}};
  plan.passes.push_back({.fills = {{.size_bytes = uint64_t{1} << 40}}});
  const Pace pace(Program(), plan);
  EXPECT_EQ(Cuts(plan, pace, {.dispatches = 1, .seconds = 1e-9}).size(), 12);
}

// The last row of a large grid may extend beyond the groups of the kernel, into the next part.
TEST(Advance, CutsLargeGridsAtWholeRows) {
  const OperatorPlan plan = Plan(32768, 10, 64 * kMebibyte);
  const Pace pace(Program(), plan);
  const double row = pace.GroupSeconds(0) * 32768;
  EXPECT_EQ(Cuts(plan, pace, {.dispatches = 1, .seconds = 3.5 * row})[0],
            (PlanCursor{0, 0, 98304}));
  EXPECT_EQ(Cuts(plan, pace, {.dispatches = 1, .seconds = 1.5 * row})[0],
            (PlanCursor{0, 0, 49152}));
  EXPECT_EQ(Cuts(plan, pace, {.dispatches = 1, .seconds = 0})[0], (PlanCursor{0, 0, 1}));
}

TEST(ForEachDispatch, SeesEveryGroupOfEveryPartOnce) {
  const OperatorPlan plan = Plan(100, 1, 64 * kMebibyte);
  const Pace pace(Program(), plan);
  uint32_t groups = 0;
  PlanCursor begin;
  for (const PlanCursor& end : Cuts(plan, pace, {.dispatches = 1000, .seconds = 0.3})) {
    ForEachDispatch(plan, begin, end, [&](const PlanCursor& at, uint32_t end_group) {
      EXPECT_EQ(at.group, groups % 100);
      EXPECT_EQ(at.pass * 2 + at.dispatch, groups / 100);
      groups += end_group - at.group;
    });
    begin = end;
  }
  EXPECT_EQ(groups, 400);
}

}  // namespace
}  // namespace opmill
