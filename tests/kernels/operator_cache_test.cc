#include "kernels/engine/operator_cache.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/kernels/counting_device.h"

namespace opmill {
namespace {

// As a program; as an operator, it must be found as well if it is normalized.
std::optional<CachedOperator> Find(OperatorCache& cache, const OperatorDesc& validated) {
  const auto found = cache.Find(std::make_shared<const Program>(ProgramOf(validated)));
  if (const auto normalized = cache.FindNormalized(validated)) {
    EXPECT_TRUE(found.has_value());
    EXPECT_EQ(*normalized->program, ProgramOf(validated));
  } else if (found.has_value()) {
    EXPECT_NE(*found->program, ProgramOf(validated));
  }
  return found;
}

TEST(OperatorCache, EvictsTheLeastRecentlyUsed) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 2});
  const auto in_use = cache->Get(SumOf(1))->compiled;
  cache->Get(SumOf(2)).IgnoreError();
  EXPECT_TRUE(cache->Get(SumOf(1))->was_cached);
  EXPECT_FALSE(cache->Get(SumOf(3))->was_cached);  // evicts 2
  EXPECT_TRUE(cache->Get(SumOf(1))->was_cached);
  EXPECT_FALSE(cache->Get(SumOf(2))->was_cached);  // evicts 3
  EXPECT_FALSE(cache->Get(SumOf(3))->was_cached);  // evicts 1
  EXPECT_EQ(cache->statistics().evictions, 3u);
  EXPECT_EQ(cache->statistics().entries, 2u);
  EXPECT_EQ(*OperatorOf(in_use->program()), SumOf(1));
}

TEST(OperatorCache, EvictsUntilTheBytesOfPlansFit) {
  CountingDevice device;
  const uint64_t one =
      OperatorCache::Create(device, {})->Get(SumOf(1))->compiled->cost().kept_bytes;
  const auto cache = OperatorCache::Create(device, {.capacity = 64, .max_bytes = 2 * one});
  for (uint32_t length = 1; length <= 3; ++length) EXPECT_TRUE(cache->Get(SumOf(length)).ok());
  EXPECT_EQ(cache->statistics().entries, 2u);
  EXPECT_EQ(cache->statistics().bytes, 2 * one);
  EXPECT_FALSE(Find(*cache, SumOf(1)).has_value());
  cache->Invalidate();
  EXPECT_EQ(cache->statistics().bytes, 0u);
  // An operator that exceeds the limit serves its caller, and evicts nothing.
  const auto small = OperatorCache::Create(device, {.capacity = 64, .max_bytes = one - 1});
  EXPECT_TRUE(small->Get(SumOf(1)).ok());
  EXPECT_EQ(small->statistics().entries, 0u);
}

TEST(OperatorCache, CountsWhatProgramsShareOnce) {
  CountingDevice device;
  const char weights = 0;
  const char others = 0;
  device.on_cost = [&](ProgramCost& cost) {
    cost.kept_bytes = 100;
    cost.shared = {{&weights, 60}};
    if (device.compiled == 3) cost.shared.push_back({&others, 20});
  };
  const auto cache = OperatorCache::Create(device, {.capacity = 64, .max_bytes = 200});
  ASSERT_TRUE(cache->Get(SumOf(1)).ok());
  EXPECT_EQ(cache->statistics().bytes, 100u);
  ASSERT_TRUE(cache->Get(SumOf(2)).ok());
  EXPECT_EQ(cache->statistics().bytes, 140u);
  ASSERT_TRUE(cache->Get(SumOf(3)).ok());
  EXPECT_EQ(cache->statistics().bytes, 180u);
  ASSERT_TRUE(cache->Get(SumOf(4)).ok());  // the first gives way, and leaves the weights
  EXPECT_EQ(cache->statistics().entries, 3u);
  EXPECT_EQ(cache->statistics().bytes, 180u);
  cache->Evict(41);  // the second has 40 for itself
  EXPECT_EQ(cache->statistics().bytes, 100u);
  cache->Evict(1);
  EXPECT_EQ(cache->statistics().bytes, 0u);
}

TEST(OperatorCache, EvictsUntilSoManyBytesAreFree) {
  CountingDevice device;
  const char weights = 0;
  device.on_cost = [&](ProgramCost& cost) {
    cost.kept_bytes = 100;
    if (device.compiled <= 4) cost.shared = {{&weights, 90}};
  };
  const auto cache = OperatorCache::Create(device, {.capacity = 64});
  for (uint32_t length = 1; length <= 8; ++length) ASSERT_TRUE(cache->Get(SumOf(length)).ok());
  EXPECT_EQ(cache->statistics().bytes, 4 * 10 + 90 + 4 * 100u);
  cache->Evict(50);  // the first four, which have the weights
  EXPECT_EQ(cache->statistics().entries, 4u);
  EXPECT_EQ(cache->statistics().bytes, 400u);
  cache->Evict(100);
  EXPECT_EQ(cache->statistics().entries, 3u);
  EXPECT_TRUE(Find(*cache, SumOf(6)).has_value());
  cache->Evict(301);  // more than they have
  EXPECT_EQ(cache->statistics().entries, 1u);
  EXPECT_TRUE(Find(*cache, SumOf(6)).has_value());  // used last
}

// Uses a different kernel for each type, but one for all lengths that end within a vector.
OperatorDesc TypedSum(DataType type, uint32_t length) {
  return ReduceDesc{.function = ReduceFunction::kSum,
                    .input = {type, {4, length}, {}},
                    .output = TensorDesc{type, {4, 1}, {}},
                    .axes = {1}};
}

TEST(OperatorCache, KeepsOperatorsOfNoMoreKernelsThanItMay) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 64, .max_kernels = 2});
  for (uint32_t length = 1001; length < 1008; length += 2) {
    ASSERT_TRUE(cache->Get(TypedSum(DataType::kInt32, length)).ok());
  }
  EXPECT_EQ(cache->statistics().kernels, 1u);
  EXPECT_EQ(cache->statistics().entries, 4u);
  ASSERT_TRUE(cache->Get(TypedSum(DataType::kFloat32, 1001)).ok());
  EXPECT_EQ(cache->statistics().kernels, 2u);
  EXPECT_EQ(cache->statistics().evictions, 0u);

  // All four operators of the first kernel are evicted; recently used ones stay.
  ASSERT_TRUE(cache->Get(TypedSum(DataType::kFloat16, 1001)).ok());
  EXPECT_EQ(cache->statistics().kernels, 2u);
  EXPECT_EQ(cache->statistics().evictions, 4u);
  EXPECT_TRUE(Find(*cache, TypedSum(DataType::kFloat32, 1001)).has_value());

  cache->Evict(1);  // half precision, because the other one was just used
  EXPECT_FALSE(Find(*cache, TypedSum(DataType::kFloat16, 1001)).has_value());
  EXPECT_EQ(cache->statistics().kernels, 1u);
  cache->Evict(7);
  EXPECT_EQ(cache->statistics().entries, 0u);
  EXPECT_EQ(cache->statistics().kernels, 0u);
  const auto none = OperatorCache::Create(device, {.capacity = 64, .max_kernels = 0});
  EXPECT_TRUE(none->Get(SumOf(1)).ok());
  EXPECT_EQ(none->statistics().entries, 0u);
}

TEST(OperatorCache, FindsWhatIsKeptAndCompilesNothing) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 2});
  EXPECT_FALSE(Find(*cache, SumOf(1)).has_value());
  EXPECT_EQ(device.compiled, 0);
  const auto first = cache->Get(SumOf(1));
  ASSERT_TRUE(first.ok() && cache->Get(SumOf(2)).ok());
  const auto found = Find(*cache, SumOf(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->was_cached);
  EXPECT_EQ(found->compiled, first->compiled);
  // A lookup counts as a use: the other operator is evicted.
  ASSERT_TRUE(cache->Get(SumOf(3)).ok());
  EXPECT_TRUE(Find(*cache, SumOf(1)).has_value());
  EXPECT_FALSE(Find(*cache, SumOf(2)).has_value());
  EXPECT_EQ(cache->statistics().hits, 4u);  // as a program and as an operator
  EXPECT_EQ(cache->statistics().misses, 3u);
}

// The sum over axis 1, of which another one is the next input.
Program TwoSums(uint32_t length) {
  Program program;
  for (const auto& [kind, size] :
       {std::pair(ValueKind::kInput, length), std::pair(ValueKind::kIntermediate, 1u),
        std::pair(ValueKind::kOutput, 1u)}) {
    program.values.push_back({.kind = kind, .tensor = {DataType::kFloat32, {4, size}, {}}});
  }
  program.nodes.push_back({SumOf(length), {0}, {1}});
  program.nodes.push_back({SumOf(1), {1}, {2}});
  return program;
}

TEST(OperatorCache, FindsProgramsAgainByTheirAddress) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  auto program = std::make_shared<Program>(TwoSums(5));
  const auto first = cache->Get(*program);
  ASSERT_TRUE(first.ok()) << first.status();
  for (int i = 0; i < 3; ++i) {
    const auto found = cache->Find(program);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->compiled, first->compiled);
  }
  EXPECT_EQ(cache->statistics().hits, 3u);
  // Another one at the same address is another program.
  Program* const address = program.get();
  program.reset();
  std::vector<std::shared_ptr<Program>> others;
  do {
    others.push_back(std::make_shared<Program>(TwoSums(6)));
  } while (others.back().get() != address && others.size() < 100);
  EXPECT_FALSE(cache->Find(others.back()).has_value());
}

TEST(OperatorCache, DoesNotKeepProgramsThatItOnlyKnows) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  std::weak_ptr<const Program> normalized;
  auto program = std::make_shared<const Program>(TwoSums(5));
  ASSERT_TRUE(cache->Get(*program).ok());
  normalized = cache->Find(program)->program;
  EXPECT_FALSE(normalized.expired());
  cache->Evict(1);
  EXPECT_TRUE(normalized.expired());
  EXPECT_FALSE(cache->Find(program).has_value());
  ASSERT_TRUE(cache->Get(*program).ok());
  EXPECT_TRUE(cache->Find(program).has_value());
  EXPECT_EQ(device.compiled, 2);
}

TEST(OperatorCache, KeepsNothingWithoutCapacity) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {.capacity = 0});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(cache->Get(SumOf(1))->was_cached);
  EXPECT_EQ(cache->statistics().entries, 0u);
  EXPECT_EQ(cache->statistics().evictions, 0u);
}

TEST(OperatorCache, ForgetsAllWhenInvalidated) {
  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  const auto before = cache->Get(SumOf(1))->compiled;
  cache->Invalidate();
  EXPECT_EQ(cache->statistics().entries, 0u);
  EXPECT_EQ(cache->statistics().kernels, 0u);
  const auto after = cache->Get(SumOf(1));
  EXPECT_FALSE(after->was_cached);
  EXPECT_NE(after->compiled, before);
}

TEST(OperatorKey, IsEqualForEquivalentDescriptors) {
  const OperatorDesc desc = ReduceDesc{.input = {DataType::kInt32, {2, 3, 4}, {}},
                                       .output = TensorDesc{DataType::kInt32, {1, 3, 1}, {}},
                                       .axes = {0, 2}};
  const OperatorDesc spelled_out =
      ReduceDesc{.input = {DataType::kInt32, {2, 3, 4}, {12, 4, 1}},
                 .output = TensorDesc{DataType::kInt32, {1, 3, 1}, {3, 1, 1}},
                 .axes = {2, 0}};
  EXPECT_EQ(OperatorKey(desc), OperatorKey(spelled_out));
  EXPECT_EQ(OperatorKey(desc).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(OperatorKey(desc).size(), 64u);

  CountingDevice device;
  const auto cache = OperatorCache::Create(device, {});
  EXPECT_FALSE(cache->Get(desc)->was_cached);
  EXPECT_TRUE(cache->Get(spelled_out)->was_cached);

  // The same for each difference alone.
  auto strided_input = ReduceDesc::From(desc);
  strided_input.input.strides = {12, 4, 1};
  auto strided_output = ReduceDesc::From(desc);
  strided_output.output->strides = {3, 1, 1};
  auto other_axes = ReduceDesc::From(desc);
  other_axes.axes = {2, 0};
  for (const OperatorDesc& same : {desc, spelled_out, OperatorDesc(strided_input),
                                   OperatorDesc(strided_output), OperatorDesc(other_axes)}) {
    EXPECT_TRUE(Find(*cache, same).has_value()) << ToString(same);
  }
}

TEST(OperatorKey, DiffersWithEveryField) {
  const TensorDesc input = {DataType::kFloat32, {4, 9}, {}};
  const TensorDesc row = {DataType::kFloat32, {4, 1}, {}};
  const TensorDesc index_row = {DataType::kUint32, {4, 1}, {}};
  const ReduceDesc reduce = {
      .function = ReduceFunction::kSum, .input = input, .output = row, .axes = {1}};
  const ArgReduceDesc arg = {
      .extreme = Extreme::kMax, .input = input, .output = index_row, .axes = {1}};
  const TopKDesc top_k = {
      .input = input, .output_values = row, .output_indices = index_row, .axis = 1, .k = 1};
  const HardmaxDesc hardmax = {.input = input, .output = input, .axes = {1}};

  std::vector<OperatorDesc> all = {reduce, arg, top_k, hardmax};
  const auto with = [&all](auto desc, const auto& change) {
    change(desc);
    all.push_back(desc);
  };
  with(reduce, [](ReduceDesc& d) { d.function = ReduceFunction::kMax; });
  with(reduce, [](ReduceDesc& d) { d.input.data_type = DataType::kFloat16; });
  with(reduce, [](ReduceDesc& d) { d.input.sizes = {49}; });
  with(reduce, [](ReduceDesc& d) { d.input.strides = {10, 1}; });
  with(reduce, [](ReduceDesc& d) { d.output->strides = {2, 1}; });
  with(reduce, [](ReduceDesc& d) { d.axes = {0}; });
  with(reduce, [](ReduceDesc& d) { d.axes = {0, 1}; });
  with(arg, [](ArgReduceDesc& d) { d.extreme = Extreme::kMin; });
  with(arg, [](ArgReduceDesc& d) { d.axis_direction = AxisDirection::kDecreasing; });
  with(arg, [](ArgReduceDesc& d) { d.output->data_type = DataType::kInt64; });
  with(top_k, [](TopKDesc& d) { d.axis = 0; });
  with(top_k, [](TopKDesc& d) { d.k = 2; });
  with(top_k, [](TopKDesc& d) { d.axis_direction = AxisDirection::kIncreasing; });
  with(top_k, [](TopKDesc& d) { d.output_values->strides = {2, 1}; });
  with(top_k, [](TopKDesc& d) { d.output_indices->strides = {2, 1}; });
  with(hardmax, [](HardmaxDesc& d) { d.output->strides = {10, 1}; });
  std::vector<std::string> keys;
  for (const OperatorDesc& desc : all) {
    EXPECT_THAT(keys, ::testing::Not(::testing::Contains(OperatorKey(desc)))) << ToString(desc);
    keys.push_back(OperatorKey(desc));
  }
}

}  // namespace
}  // namespace opmill
