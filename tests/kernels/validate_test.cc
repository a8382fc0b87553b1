#include "kernels/descriptor/validate.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill {
namespace {

using Sizes = std::vector<uint32_t>;
using Strides = std::vector<uint32_t>;

TensorDesc Tensor(DataType type, Sizes sizes, Strides strides = {}) {
  return {type, std::move(sizes), std::move(strides)};
}
TensorDesc Float(Sizes sizes, Strides strides = {}) {
  return Tensor(DataType::kFloat32, std::move(sizes), std::move(strides));
}

// Valid descriptors, which tests modify.
ArgReduceDesc ArgMin() { return {Extreme::kMin, Float({2, 3, 4}), std::nullopt, {1}, {}}; }
ReduceDesc Reduce() { return {ReduceFunction::kSum, Float({2, 3, 4}), std::nullopt, {1}}; }
TopKDesc TopK() {
  return {Float({2, 3, 4}), std::nullopt, std::nullopt, 2, 3, AxisDirection::kDecreasing};
}
HardmaxDesc Hardmax() { return {Float({2, 3, 4}), std::nullopt, {0, 2}}; }

template <typename Desc>
OperatorDesc Spoil(Desc desc, const std::function<void(Desc&)>& spoil) {
  spoil(desc);
  return desc;
}
OperatorDesc WithInput(TensorDesc input) {
  return Spoil<ReduceDesc>(Reduce(), [&](auto& d) { d.input = input; });
}
OperatorDesc WithOutput(TensorDesc output) {
  return Spoil<ReduceDesc>(Reduce(), [&](auto& d) { d.output = output; });
}

struct Refusal {
  OperatorDesc desc;
  const char* field;
  const char* sentence;
};

void ExpectRefusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    const absl::Status status = Validate(refusal.desc).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ToString(refusal.desc);
    EXPECT_EQ(status.message(), refusal.sentence);
    EXPECT_EQ(FieldOf(status).value_or("none"), refusal.field) << refusal.sentence;
  }
}

TEST(ValidateTensor, RefusesInvalidTensors) {
  constexpr uint32_t kHuge = 0xFFFF'FFFF;
  ExpectRefusals({
      {WithInput(Float({})), "input.sizes", "input.sizes has 0 dimensions; 1 to 8 are allowed."},
      {WithInput(Float(Sizes(9, 1))), "input.sizes",
       "input.sizes has 9 dimensions; 1 to 8 are allowed."},
      {WithInput(Float({2, 3, 0})), "input.sizes[2]", "input.sizes[2] (0) is below 1."},
      {WithInput(Float({65536, 65536})), "input.sizes",
       "input.sizes [65536,65536] name more elements than the limit (4294967295)."},
      {WithInput(Float({kHuge, kHuge, kHuge})), "input.sizes",
       "input.sizes [4294967295,4294967295,4294967295] name more elements than the limit "
       "(4294967295)."},
      {WithInput(Float({2, 3}, {1})), "input.strides",
       "input.strides has 1 entries, but input.sizes has 2."},
      {WithInput(Float({2, 3}, {1, 2, 3})), "input.strides",
       "input.strides has 3 entries, but input.sizes has 2."},
      {WithInput(Float({kHuge, 1}, {kHuge, 1})), "input.strides",
       "input.strides [4294967295,1] with sizes [4294967295,1] reach further than 64 bits can "
       "count "
       "in bytes."},
      {WithInput(Tensor(DataType::kUnknown, {2, 3})), "input.data_type",
       "input.data_type (0) is not a data type that DirectML names."},
      {WithInput(Tensor(static_cast<DataType>(12), {2, 3})), "input.data_type",
       "input.data_type (12) is not a data type that DirectML names."},
      {WithInput(Tensor(DataType::kFloat64, {2, 3})), "input.data_type",
       "input.data_type FLOAT64 is taken by no operator."},
  });
}

TEST(ValidateTensor, AllowsTheLargestAndTheBroadcast) {
  for (const TensorDesc& input : {
           Float({1, 0xFFFF'FFFF}),
           Float({1, 65535, 65537}),
           Float({2, 3}, {0, 0}),
           Float({2, 3}, {0xFFFF'FFFF, 0xFFFF'FFFF}),
           Float(Sizes(8, 2)),
           Float({1, 1}, {0xFFFF'FFFF, 7}),
       }) {
    EXPECT_EQ(Validate(WithInput(input)).status(), absl::OkStatus()) << ToString(input);
  }
}

TEST(ValidateAxes, RefusesAxesThatNameNoDimensions) {
  const auto with_axes = [](std::vector<uint32_t> axes) {
    return Spoil<ReduceDesc>(Reduce(), [&](auto& d) { d.axes = axes; });
  };
  ExpectRefusals({
      {with_axes({3}), "axes[0]", "axes[0] (3) is not below the dimension count (3) of input."},
      {with_axes({0, 0xFFFF'FFFF}), "axes[1]",
       "axes[1] (4294967295) is not below the dimension count (3) of input."},
      {with_axes({2, 2, 2, 2, 3}), "axes[4]",
       "axes[4] (3) is not below the dimension count (3) of input."},
      {Spoil<HardmaxDesc>(Hardmax(),
                          [](auto& d) {
                            d.axes = {0, 1, 2, 3};
                          }),
       "axes[3]", "axes[3] (3) is not below the dimension count (3) of input."},
  });
}

TEST(ValidateAxes, KeepsTheFirstOfRepeatedAxes) {
  ArgReduceDesc desc = ArgMin();
  for (int i = 0; i < 1000; ++i) desc.axes.insert(desc.axes.end(), {2, 0});
  desc.axes.erase(desc.axes.begin(), desc.axes.end() - 2000);
  const absl::StatusOr<OperatorDesc> validated = Validate(desc);
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_EQ(validated->list("axes"), (std::vector<uint32_t>{2, 0}));
  EXPECT_EQ(OutputsOf(*validated)[0].sizes, (std::vector<uint32_t>{1, desc.input.sizes[1], 1}));
}

TEST(ValidateAxes, TakesNoneAsEachElementAlone) {
  for (OperatorDesc desc :
       {OperatorDesc(Reduce()), OperatorDesc(ArgMin()), OperatorDesc(Hardmax())}) {
    desc.outputs = {std::nullopt};
    for (size_t i = 0; i < desc.attributes.size(); ++i) {
      if (desc.schema->attributes[i].kind == AttributeKind::kAxes) {
        desc.attributes[i] = std::vector<uint32_t>();
      }
    }
    const absl::StatusOr<OperatorDesc> validated = Validate(desc);
    ASSERT_TRUE(validated.ok()) << validated.status();
    EXPECT_EQ(OutputsOf(*validated)[0].sizes, desc.inputs[0].sizes);
  }
}

TEST(ValidateTopK, RefusesAxesAndKOutOfRange) {
  ExpectRefusals({
      {Spoil<TopKDesc>(TopK(), [](auto& d) { d.axis = 3; }), "axis",
       "axis (3) is not below the dimension count (3) of input."},
      {Spoil<TopKDesc>(TopK(), [](auto& d) { d.k = 0; }), "k", "k (0) is below 1."},
      {Spoil<TopKDesc>(TopK(), [](auto& d) { d.k = 5; }), "k",
       "k (5) is larger than the size (4) of axis (2)."},
  });
}

TEST(ValidateTopK, AllowsKEqualToTheSize) {
  TopKDesc desc = TopK();
  desc.k = 4;
  EXPECT_EQ(Validate(desc).status(), absl::OkStatus());
}

TEST(ValidateEnums, RefusesUnknownValues) {
  ExpectRefusals({
      {Spoil<ReduceDesc>(Reduce(), [](auto& d) { d.function = static_cast<ReduceFunction>(12); }),
       "function", "function (12) is unknown; 0 to 11 are allowed."},
      {Spoil<ArgReduceDesc>(ArgMin(),
                            [](auto& d) { d.axis_direction = static_cast<AxisDirection>(2); }),
       "axis_direction", "axis_direction (2) is unknown; 0 to 1 are allowed."},
      {Spoil<TopKDesc>(TopK(), [](auto& d) { d.axis_direction = static_cast<AxisDirection>(7); }),
       "axis_direction", "axis_direction (7) is unknown; 0 to 1 are allowed."},
  });
  const absl::Status level = Validate(Reduce(), static_cast<FeatureLevel>(0x5300)).status();
  EXPECT_EQ(level.message(), "feature_level (21248) is not a level that DirectML names.");
  EXPECT_EQ(FieldOf(level), "feature_level");
}

TEST(ValidateOutput, RefusesWhatTheOperatorDoesNotWrite) {
  ExpectRefusals({
      {WithOutput(Float({2, 4})), "output.sizes",
       "output.sizes has 2 dimensions, but input.sizes has 3."},
      {WithOutput(Float({2, 3, 4})), "output.sizes[1]",
       "output.sizes[1] is 3, but 1 is what the operator writes there."},
      {WithOutput(Float({1, 1, 4})), "output.sizes[0]",
       "output.sizes[0] is 1, but 2 is what the operator writes there."},
      {WithOutput(Float({2, 1, 0})), "output.sizes[2]", "output.sizes[2] (0) is below 1."},
      {WithOutput(Float({2, 1, 4}, {4, 1})), "output.strides",
       "output.strides has 2 entries, but output.sizes has 3."},
      {WithOutput(Float({2, 1, 4}, {0, 0, 1})), "output.strides",
       "output.strides [0,0,1] with sizes [2,1,4] put two elements of an output in one place."},
      {WithOutput(Float({2, 1, 4}, {3, 1, 1})), "output.strides",
       "output.strides [3,1,1] with sizes [2,1,4] put two elements of an output in one place."},
      {WithOutput(Tensor(DataType::kInt32, {2, 1, 4})), "output.data_type",
       "output.data_type (INT32) differs from input.data_type (FLOAT32)."},
      {WithOutput(Tensor(DataType::kFloat64, {2, 1, 4})), "output.data_type",
       "output.data_type FLOAT64 is taken by no operator."},
      {Spoil<HardmaxDesc>(Hardmax(),
                          [](auto& d) {
                            d.output = Float({2, 3, 5});
                          }),
       "output.sizes[2]", "output.sizes[2] is 5, but 4 is what the operator writes there."},
      {Spoil<HardmaxDesc>(Hardmax(),
                          [](auto& d) {
                            d.output = Tensor(DataType::kFloat16, {2, 3, 4});
                          }),
       "output.data_type", "output.data_type (FLOAT16) differs from input.data_type (FLOAT32)."},
      {Spoil<TopKDesc>(TopK(),
                       [](auto& d) {
                         d.output_values = Float({2, 3, 4});
                       }),
       "output_values.sizes[2]",
       "output_values.sizes[2] is 4, but 3 is what the operator writes there."},
      {Spoil<TopKDesc>(TopK(),
                       [](auto& d) {
                         d.output_values = Tensor(DataType::kUint32, {2, 3, 3});
                       }),
       "output_values.data_type",
       "output_values.data_type (UINT32) differs from input.data_type (FLOAT32)."},
      {Spoil<TopKDesc>(TopK(),
                       [](auto& d) {
                         d.output_indices = Tensor(DataType::kUint32, {2, 3, 3}, {0, 3, 1});
                       }),
       "output_indices.strides",
       "output_indices.strides [0,3,1] with sizes [2,3,3] put two elements of an output in one "
       "place."},
      {Spoil<TopKDesc>(TopK(),
                       [](auto& d) {
                         d.output_indices = Float({2, 3, 3});
                       }),
       "output_indices.data_type",
       "top_k writes indices as UINT64, UINT32, but output_indices.data_type is FLOAT32."},
      {Spoil<TopKDesc>(TopK(),
                       [](auto& d) {
                         d.output_indices = Tensor(DataType::kInt32, {2, 3, 3});
                       }),
       "output_indices.data_type",
       "top_k writes indices as UINT64, UINT32, but output_indices.data_type is INT32."},
      {Spoil<ArgReduceDesc>(ArgMin(),
                            [](auto& d) {
                              d.output = Tensor(DataType::kUint16, {2, 1, 4});
                            }),
       "output.data_type",
       "argmin writes indices as INT64, INT32, UINT64, UINT32, but output.data_type is UINT16."},
  });
}

TEST(ValidateOutput, RefusesUndecidableStrides) {
  const TensorDesc tangled = Float({1600, 1600, 1600}, {4294967291, 3637190087, 2718281801});
  ASSERT_EQ(FindOverlap(tangled), Overlap::kUndecided);
  const absl::Status status = Validate(HardmaxDesc{Float(tangled.sizes), tangled, {0}}).status();
  EXPECT_EQ(FieldOf(status), "output.strides");
  EXPECT_THAT(std::string(status.message()),
              ::testing::EndsWith("cross too often to tell whether two elements of an output are "
                                  "put in one place."));
}

TEST(ValidateOutput, TakesInt32IndicesOfReductionsOfAnyLength) {
  ArgReduceDesc desc = ArgMin();
  desc.input = Tensor(DataType::kUint8, {3, 0x4000'0000});
  desc.axes = {0, 1};
  desc.output = Tensor(DataType::kInt32, {1, 1});
  EXPECT_EQ(Validate(desc).status(), absl::OkStatus());
}

TEST(ValidateTypes, RefusesTypesThatTheFunctionNeverSupports) {
  const auto reduce = [](ReduceFunction function, DataType type) {
    return ReduceDesc{function, Tensor(type, {2}), std::nullopt, {0}};
  };
  ExpectRefusals({
      {reduce(ReduceFunction::kSum, DataType::kInt8), "input.data_type",
       "reduce SUM takes FLOAT32, FLOAT16, INT64, INT32, UINT64, UINT32, but input.data_type is "
       "INT8."},
      {reduce(ReduceFunction::kLogSumExp, DataType::kInt32), "input.data_type",
       "reduce LOG_SUM_EXP takes FLOAT32, FLOAT16, but input.data_type is INT32."},
      {HardmaxDesc{Tensor(DataType::kUint8, {2}), std::nullopt, {0}}, "input.data_type",
       "hardmax takes FLOAT32, FLOAT16, but input.data_type is UINT8."},
  });
}

TEST(ValidateLevel, NamesTheFieldAndTheLevelThatAllowsIt) {
  struct Row {
    OperatorDesc desc;
    FeatureLevel level;
    const char* field;
    const char* sentence;
  };
  const TensorDesc batch = Float({1, 1, 2, 3});
  const Row rows[] = {
      {ArgMin(), FeatureLevel::k2_1, "feature_level",
       "At feature level 2.1 argmin does not exist; feature level 3.0 allows this request."},
      {ReduceDesc{ReduceFunction::kSum, Tensor(DataType::kInt64, {2, 3}), std::nullopt, {0}},
       FeatureLevel::k2_1, "input.sizes",
       "At feature level 2.1 reduce SUM takes 4 dimensions, but input.sizes has 2; feature level "
       "5.0 allows this request."},
      {ReduceDesc{ReduceFunction::kSum, Tensor(DataType::kInt64, {2, 3}), std::nullopt, {0}},
       FeatureLevel::k3_0, "input.data_type",
       "At feature level 3.0 reduce SUM takes FLOAT32, FLOAT16, INT32, UINT32, but input.data_type "
       "is INT64; feature level 5.0 allows this request."},
      {ReduceDesc{ReduceFunction::kArgMax, batch, Tensor(DataType::kInt64, {1, 1, 2, 1}), {3}},
       FeatureLevel::k2_1, "output.data_type",
       "At feature level 2.1 reduce ARGMAX writes indices as UINT32, but output.data_type is "
       "INT64; "
       "feature level 3.0 allows this request."},
      {TopKDesc{batch, std::nullopt, std::nullopt, 3, 1, AxisDirection::kDecreasing},
       FeatureLevel::k1_0, "feature_level",
       "At feature level 1.0 top_k does not exist; feature level 2.0 allows this request."},
      {TopKDesc{batch, std::nullopt, std::nullopt, 3, 1, AxisDirection::kIncreasing},
       FeatureLevel::k2_0, "axis_direction",
       "At feature level 2.0 top_k takes axis_direction DECREASING, but axis_direction is "
       "INCREASING; feature level 2.1 allows this request."},
      {Hardmax(), FeatureLevel::k5_0, "axes",
       "At feature level 5.0 hardmax takes the last axis (2) alone, but axes is [0,2]; feature "
       "level 5.1 allows this request."},
      {HardmaxDesc{Float({2, 3, 4}), std::nullopt, {2}}, FeatureLevel::k5_0, "input.sizes",
       "At feature level 5.0 hardmax takes at most 2 dimensions after leading sizes of 1, but "
       "input.sizes is [2,3,4]; feature level 5.1 allows this request."},
      {HardmaxDesc{Float({1, 1, 1, 2, 3}), std::nullopt, {4}}, FeatureLevel::k1_0, "input.sizes",
       "At feature level 1.0 hardmax takes 4 dimensions, but input.sizes has 5; feature level 2.0 "
       "allows this request."},
      {HardmaxDesc{Float({2, 3}), std::nullopt, {1}}, FeatureLevel::k2_1, "input.sizes",
       "At feature level 2.1 hardmax takes 4 to 5 dimensions, but input.sizes has 2; feature level "
       "3.0 allows this request."},
  };
  for (const Row& row : rows) {
    const absl::Status status = Validate(row.desc, row.level).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << row.sentence;
    EXPECT_EQ(status.message(), row.sentence);
    EXPECT_EQ(FieldOf(status).value_or("none"), row.field) << row.sentence;
  }
}

TEST(Validate, ReportsInvalidBeforeTooNew) {
  TopKDesc desc = TopK();
  desc.k = 99;
  EXPECT_EQ(Validate(desc, FeatureLevel::k1_0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Validate, InfersPackedOutputs) {
  struct Row {
    OperatorDesc desc;
    std::vector<TensorDesc> outputs;
  };
  ReduceDesc reduce_arg = Reduce();
  reduce_arg.function = ReduceFunction::kArgMin;
  HardmaxDesc strided = Hardmax();
  strided.input.strides = {1, 0, 100};
  const Row rows[] = {
      {ArgMin(), {Tensor(DataType::kUint32, {2, 1, 4})}},
      {Reduce(), {Float({2, 1, 4})}},
      {reduce_arg, {Tensor(DataType::kUint32, {2, 1, 4})}},
      {TopK(), {Float({2, 3, 3}), Tensor(DataType::kUint32, {2, 3, 3})}},
      {strided, {Float({2, 3, 4})}},
  };
  for (const Row& row : rows) {
    const absl::StatusOr<OperatorDesc> validated = Validate(row.desc);
    ASSERT_TRUE(validated.ok()) << validated.status();
    EXPECT_EQ(OutputsOf(*validated), row.outputs) << ToString(row.desc);
    EXPECT_EQ(validated->inputs[0], row.desc.inputs[0]);
    // A complete descriptor is not changed.
    EXPECT_EQ(Validate(*validated).value(), *validated);
  }
}

TEST(Validate, KeepsOutputsThatAreGiven) {
  ArgReduceDesc desc = ArgMin();
  desc.output = Tensor(DataType::kInt64, {2, 1, 4}, {1, 9, 2});
  EXPECT_EQ(Validate(desc).value(), OperatorDesc(desc));
}

}  // namespace
}  // namespace opmill
