#include "kernels/dims/iteration_space.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TensorDesc Tensor(std::vector<uint32_t> sizes, std::vector<uint32_t> strides = {}) {
  return {
      .data_type = DataType::kFloat32, .sizes = std::move(sizes), .strides = std::move(strides)};
}

IterationSpace Space(const TensorDesc& input, const std::vector<uint32_t>& axes,
                     ReducedOrder order = ReducedOrder::kAny) {
  TensorDesc output = {.data_type = input.data_type, .sizes = input.sizes};
  for (uint32_t axis : axes) output.sizes[axis] = 1;
  return MakeIterationSpace(input, axes, output, nullptr, order);
}

TEST(IterationSpace, MergesNeighboursThatArePacked) {
  const IterationSpace space = Space(Tensor({2, 3, 4, 5}), {2, 3});
  EXPECT_THAT(space.kept, ElementsAre(SpaceDim{6, {20, 1, 0}}));
  EXPECT_THAT(space.reduced, ElementsAre(SpaceDim{20, {1, 0, 0}}));
}

TEST(IterationSpace, DoesNotMergeAcrossPadding) {
  const IterationSpace space = Space(Tensor({2, 3, 4}, {15, 5, 1}), {1, 2});
  EXPECT_THAT(space.reduced, ElementsAre(SpaceDim{3, {5, 0, 0}}, SpaceDim{4, {1, 0, 0}}));
}

TEST(IterationSpace, MergesAcrossAKeptDimensionOnlyWhatWalksAsOne) {
  // Axes 0 and 2: rows of 4, twice, 12 apart.
  const IterationSpace space = Space(Tensor({2, 3, 4}), {0, 2});
  EXPECT_THAT(space.reduced, ElementsAre(SpaceDim{2, {12, 0, 0}}, SpaceDim{4, {1, 0, 0}}));
  EXPECT_THAT(space.kept, ElementsAre(SpaceDim{3, {4, 1, 0}}));
}

TEST(IterationSpace, ForgetsSizesOfOne) {
  const IterationSpace space = Space(Tensor({1, 7, 1}), {0, 2});
  EXPECT_THAT(space.kept, ElementsAre(SpaceDim{7, {1, 1, 0}}));
  EXPECT_THAT(space.reduced, IsEmpty());
  EXPECT_EQ(space.position_count(), 1u);
}

TEST(IterationSpace, WalksATransposedReductionInMemoryOrderWhenOrderIsFree) {
  const TensorDesc transposed = Tensor({3, 4}, {1, 3});
  EXPECT_THAT(Space(transposed, {0, 1}).reduced, ElementsAre(SpaceDim{12, {1, 0, 0}}));
  EXPECT_THAT(Space(transposed, {0, 1}, ReducedOrder::kRowMajor).reduced,
              ElementsAre(SpaceDim{3, {1, 0, 0}}, SpaceDim{4, {3, 0, 0}}));
}

// Every position of every result as (output offset, input offset, index); without an index if the
// order is free.
using Positions = std::multiset<std::tuple<uint64_t, uint64_t, uint64_t>>;

void Visit(const IterationSpace& space, Positions& positions) {
  SpaceWalk kept(space.kept, 0);
  for (uint64_t k = 0; k < space.results(); ++k, kept.Next()) {
    for (uint64_t r = 0; r < space.position_count(); ++r) {
      const SpaceWalk reduced(space.reduced, r);
      positions.insert(
          {space.bases[kOutputTensor] + kept.offset(kOutputTensor),
           space.bases[kInputTensor] + kept.offset(kInputTensor) + reduced.offset(kInputTensor),
           space.order == ReducedOrder::kAny ? 0 : space.first_position + r});
    }
  }
}

struct SliceCase {
  TensorDesc input;
  std::vector<uint32_t> axes;
};

TEST(IterationSpaceSlices, CoverEveryPositionOnceWithinTheirLimits) {
  const std::vector<SliceCase> cases = {
      {Tensor({5, 7, 9}), {1}},
      {Tensor({5, 7, 9}), {0, 2}},
      {Tensor({5, 7, 9}), {0, 1, 2}},
      {Tensor({315}), {0}},
      {Tensor({3, 4, 5}, {1, 3, 12}), {0, 2}},
      {Tensor({6, 5}, {0, 1}), {1}},
      {Tensor({4, 4}, {100, 7}), {0}},
      {Tensor({3, 4, 50}, {20, 1, 0}), {0, 2}},
  };
  const SliceLimits limits = {.elements = {24, 12, kNoLimit}, .results = 10};
  for (const SliceCase& c : cases) {
    for (const ReducedOrder order : {ReducedOrder::kRowMajor, ReducedOrder::kAny}) {
      SCOPED_TRACE(ToString(c.input));
      const IterationSpace space = Space(c.input, c.axes, order);
      Positions whole;
      Visit(space, whole);
      Positions sliced;
      for (const IterationSpace& kept : SliceKept(space, limits)) {
        EXPECT_LE(kept.results(), limits.results);
        EXPECT_LT(SpanOf(kept.kept, kOutputTensor), limits.elements[kOutputTensor]);
        for (const IterationSpace& part : SliceReduced(kept, limits)) {
          EXPECT_LT(part.Span(kInputTensor), limits.elements[kInputTensor]);
          Visit(part, sliced);
        }
      }
      EXPECT_EQ(sliced, whole);
    }
  }
}

TEST(IterationSpaceSlices, CutTheLargestSpanIfTheOrderIsFree) {
  // Cutting the broadcast dimension, which is outermost, does not reduce the span.
  const SliceLimits limits = {.elements = {24, 12, kNoLimit}, .results = 10};
  const TensorDesc broadcast = Tensor({3, 50}, {20, 0});
  EXPECT_EQ(SliceReduced(Space(broadcast, {0, 1}), limits).size(), 2u);
}

}  // namespace
}  // namespace opmill
