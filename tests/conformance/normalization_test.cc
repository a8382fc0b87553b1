// softmax, log_softmax and normalizations, which are lowered, on every device, within the bounds of
// docs/operators.md of the reference, which computes them in double precision; and their refusals.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/lower.h"
#include "kernels/operators/normalization/normalization_desc.h"
#include "kernels/operators/softmax/softmax_desc.h"
#include "tests/conformance/reference_run.h"
#include "tests/support/programs.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using ::testing::Each;
using ::testing::IsNan;
using Numbers = std::vector<uint32_t>;

constexpr double kEpsilon = 0x1p-23;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Rows, columns, planes; slices of the processor that are whole, cut and of one row; strides; gaps.
struct Shape {
  Numbers sizes;
  Numbers axes;
  Numbers input_strides = {};
  Numbers output_strides = {};
};
const Shape kShapes[] = {
    {{7}, {0}},
    {{5, 1000}, {1}},
    {{33, 1001}, {1}},
    {{3, 40000}, {1}},
    {{70, 65}, {0}},
    {{2, 9, 5, 7}, {1}},
    {{3, 2, 50, 61}, {2, 3}},
    {{2, 3, 4}, {0, 1, 2}},
    {{4, 3}, {}},
    {{6, 37}, {1}, {1, 6}, {41, 1}},
    {{8, 31}, {1}, {0, 2}},
};

uint64_t CountOf(const Shape& shape) {
  uint64_t count = 1;
  for (const uint32_t axis : shape.axes) count *= shape.sizes[axis];
  return count;
}

// The largest magnitude.
double LargestOf(const TensorDesc& desc, const std::vector<std::byte>& bytes) {
  double largest = 0;
  for (const double x : NumbersIn(desc, bytes)) largest = std::max(largest, std::abs(x));
  return largest;
}

// The smallest root of variance + epsilon, or of mean square + epsilon, over the axes.
double DeviationOf(const OperatorDesc& desc, const TensorValues& inputs) {
  const TensorDesc& tensor = desc.inputs[0];
  const Reader reader(tensor, inputs[0]);
  const ReductionShape shape(tensor.sizes, desc.list("axes"));
  double smallest = kInfinity;
  shape.ForEachOutput([&](const Coordinate& row) {
    double count = 0;
    double sum = 0;
    double squares = 0;
    shape.ForEachReduced(row, [&](const Coordinate& at, uint64_t) {
      const double x = ToDouble(tensor.data_type, reader.At(at));
      ++count;
      sum += x;
      squares += x * x;
    });
    const double mean = desc.number("use_mean") != 0 ? sum / count : 0;
    const double variance = std::max(0.0, squares / count - mean * mean);
    smallest = std::min(smallest, std::sqrt(variance + double{desc.value<float>("epsilon")}));
  });
  return smallest;
}

class NormalizationTest : public DeviceTest {
 protected:
  // Where kernels are compiled, a sample: each of the shapes, in one type.
  bool Skips(const Shape& shape, DataType type) {
    const DeviceKind kind = device().info().kind;
    if (kind == DeviceKind::kReference || kind == DeviceKind::kCpu) return false;
    return (static_cast<uint32_t>(&shape - kShapes) + static_cast<uint32_t>(type)) % 2 != 0;
  }
  void Check(const OperatorDesc& desc, const TensorValues& inputs, const Bound& bound) {
    const auto outputs = RunValidated(device(), desc, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status() << ToString(desc);
    EXPECT_EQ(FindDifference(desc, inputs, *outputs, bound), "") << ToString(desc);
  }
  std::vector<double> Results(const OperatorDesc& desc, const std::vector<double>& elements) {
    const auto outputs = RunValidated(device(), desc, {BytesOfNumbers(desc.inputs[0], elements)});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return NumbersIn(*desc.outputs[0], (*outputs)[0]);
  }
};

OperatorDesc SoftmaxOf(const OperatorSchema& schema, DataType type, const Shape& shape) {
  return ValidDesc(schema, {{type, shape.sizes, shape.input_strides}}, {{"axes", shape.axes}},
                   {TensorDesc{type, shape.sizes, shape.output_strides}});
}

TEST_P(NormalizationTest, SoftmaxIsWithinItsBound) {
  for (const Shape& shape : kShapes) {
    const double sums = 3 * std::log2(static_cast<double>(CountOf(shape))) + 24;
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      if (Skips(shape, type)) continue;
      for (const ValuePattern values :
           {ValuePattern::kNumbers, ValuePattern::kSmallIntegers, ValuePattern::kNegativeInfinity,
            ValuePattern::kRareNans, ValuePattern::kRareInfinities, ValuePattern::kExtremes}) {
        const OperatorDesc softmax = SoftmaxOf(kSoftmaxSchema, type, shape);
        Check(softmax, ValuesFor(softmax, values, 1), [&](const Coordinate&, double want) {
          return want == 0 ? 0 : kEpsilon * want * (sums - std::log(want) / 2);
        });
        const OperatorDesc logarithm = SoftmaxOf(kLogSoftmaxSchema, type, shape);
        Check(logarithm, ValuesFor(logarithm, values, 1),
              [&](const Coordinate&, double want) { return kEpsilon * (sums + std::abs(want)); });
      }
    }
  }
}

TEST_P(NormalizationTest, SoftmaxOfInfinities) {
  for (const OperatorSchema* const schema : {&kSoftmaxSchema, &kLogSoftmaxSchema}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      const OperatorDesc desc = SoftmaxOf(*schema, type, {{1, 3}, {1}});
      EXPECT_THAT(Results(desc, {-kInfinity, -kInfinity, -kInfinity}), Each(IsNan()));
      EXPECT_THAT(Results(desc, {1, kInfinity, 2}), Each(IsNan()));
      EXPECT_THAT(Results(desc, {1, kNan, -kInfinity}), Each(IsNan()));
      const double zero = schema == &kSoftmaxSchema ? 0 : -kInfinity;
      const double one = schema == &kSoftmaxSchema ? 1 : 0;
      EXPECT_THAT(Results(desc, {-kInfinity, 60000, -60000}),
                  ::testing::ElementsAre(zero, one,
                                         schema == &kSoftmaxSchema    ? 0
                                         : type == DataType::kFloat16 ? -kInfinity
                                                                      : -120000));
    }
  }
}

TEST_P(NormalizationTest, MeanVarianceIsWithinItsBound) {
  for (const Shape& shape : kShapes) {
    const double roundings = 4 * std::log2(static_cast<double>(CountOf(shape))) + 32;
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      if (Skips(shape, type)) continue;
      for (uint32_t turn = 0; turn < 8; ++turn) {
        const uint32_t use_mean = turn % 2;
        const uint32_t use_variance = turn / 2 % 2;
        std::vector<TensorDesc> tensors = {{type, shape.sizes, shape.input_strides}};
        if (turn >= 2) tensors.push_back({type, Numbers(shape.sizes.size(), 1), {}});
        if (turn >= 4) tensors.push_back({type, shape.sizes, {}});
        const OperatorDesc desc = ValidDesc(kMeanVarianceNormalizationSchema, tensors,
                                            {{"axes", shape.axes},
                                             {"use_mean", use_mean},
                                             {"use_variance", use_variance},
                                             {"epsilon", 0.01f}},
                                            {TensorDesc{type, shape.sizes, shape.output_strides}});
        const TensorValues inputs = ValuesFor(desc, ValuePattern::kNumbers, turn);
        // The deviation is at least the root of epsilon.
        const double largest = LargestOf(desc.inputs[0], inputs[0]);
        const double scale = inputs.size() > 1 ? LargestOf(desc.inputs[1], inputs[1]) : 1;
        const double bias = inputs.size() > 2 ? LargestOf(desc.inputs[2], inputs[2]) : 0;
        const double deviation = use_variance != 0 ? DeviationOf(desc, inputs) : 1;
        Check(desc, inputs, [&](const Coordinate&, double want) {
          return kEpsilon * (roundings * largest * scale / deviation + 4 * (std::abs(want) + bias));
        });
      }
    }
  }
}

TEST_P(NormalizationTest, BatchIsWithinItsBound) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const Numbers& sizes : {Numbers{1, 5, 1, 1}, Numbers{3, 5, 7, 1}, Numbers{1, 1, 1, 1}}) {
      const TensorDesc input = {type, {3, 5, 7, 11}, {}};
      const TensorDesc other = {type, sizes, {}};
      const OperatorDesc desc = ValidDesc(
          kBatchNormalizationSchema, {input, other, other, {type, {1, 5, 1, 1}, {}}, other}, {});
      const TensorValues inputs = {ValuesFor(desc, ValuePattern::kNumbers, 1)[0],
                                   ValuesFor(desc, ValuePattern::kNumbers, 2)[1],
                                   ValuesFor(desc, ValuePattern::kPositive, 3)[2],
                                   ValuesFor(desc, ValuePattern::kNumbers, 4)[3],
                                   ValuesFor(desc, ValuePattern::kNumbers, 5)[4]};
      const double bias = LargestOf(desc.inputs[4], inputs[4]);
      Check(desc, inputs, [&](const Coordinate&, double want) {
        return 16 * kEpsilon * (std::abs(want) + bias);
      });
    }
  }
}

TEST_P(NormalizationTest, LocalResponseIsWithinItsBound) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const uint32_t local_size : {1u, 2u, 3u, 5u, 9u}) {
      for (const uint32_t cross_channel : {0u, 1u}) {
        const OperatorDesc desc = ValidDesc(
            kLocalResponseNormalizationSchema, {{type, {2, 7, 6, 5}, {}}},
            {{"local_size", local_size}, {"cross_channel", cross_channel}, {"alpha", 0.3f}});
        Check(desc, ValuesFor(desc, ValuePattern::kNumbers, local_size),
              [&](const Coordinate&, double want) {
                return (2 * local_size + 40) * kEpsilon * std::abs(want);
              });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, NormalizationTest, ::testing::ValuesIn(TestDevices()));

std::string RefusalOf(const OperatorDesc& desc, FeatureLevel level = kNewestFeatureLevel) {
  const absl::Status status = Validate(desc, level).status();
  return absl::StrCat(FieldOf(status).value_or("no field"), ": ", status.message());
}

TEST(Normalization, RefusesTensorsThatDoNotFit) {
  const TensorDesc input = {DataType::kFloat32, {2, 3, 4, 5}, {}};
  const TensorDesc two = {DataType::kFloat32, {1, 2, 1, 1}, {}};
  const std::vector<NamedValue> axes = {{"axes", Numbers{1}}};
  EXPECT_EQ(RefusalOf(DescOf(kMeanVarianceNormalizationSchema, {input, two}, axes)),
            "scale.sizes[1]: scale.sizes[1] is 2, but must be 1 or 3, as input.sizes[1].");
  EXPECT_EQ(RefusalOf(DescOf(kMeanVarianceNormalizationSchema,
                             {input, {DataType::kFloat32, {3}, {}}}, axes)),
            "scale.sizes: scale.sizes has 1 dimensions, but input.sizes has 4.");
  EXPECT_EQ(RefusalOf(DescOf(kMeanVarianceNormalizationSchema,
                             {input, {DataType::kFloat16, {1, 1, 1, 1}, {}}}, axes)),
            "scale.data_type: scale.data_type (FLOAT16) differs from input.data_type (FLOAT32).");
  EXPECT_EQ(
      RefusalOf(DescOf(kMeanVarianceNormalizationSchema, {input, input}, axes), FeatureLevel::k6_2),
      "scale: At feature level 6.2 mean_variance_normalization takes scale and bias or "
      "neither, but has scale alone; feature level 6.3 allows this request.");
  EXPECT_EQ(RefusalOf(DescOf(kLocalResponseNormalizationSchema, {input}, {{"local_size", 0u}})),
            "local_size: local_size (0) is not 1 to 65535.");
  EXPECT_EQ(RefusalOf(DescOf(kSoftmaxSchema, {input}, {{"axes", Numbers{1}}}), FeatureLevel::k5_0),
            "axes: At feature level 5.0 softmax takes the last axis (3) alone, but axes is [1]; "
            "feature level 5.1 allows this request.");
}

TEST(Lower, LeavesOnlyOperatorsThatHaveKernels) {
  const OperatorDesc softmax =
      ValidDesc(kSoftmaxSchema, {{DataType::kFloat16, {4, 5}, {}}}, {{"axes", Numbers{1}}});
  ASSERT_TRUE(IsLowered(softmax));
  const Program lowered = Lower(ProgramOf(softmax));
  EXPECT_EQ(lowered.nodes.size(), 4u);
  for (const ProgramNode& node : lowered.nodes) EXPECT_FALSE(IsLowered(node.desc));
  // The values of the program come first.
  EXPECT_EQ(lowered.values[0].kind, ValueKind::kInput);
  EXPECT_EQ(lowered.values[1].kind, ValueKind::kOutput);
  EXPECT_EQ(lowered.values.size(), 5u);
  EXPECT_EQ(Lower(ProgramOf(softmax), &IsLowered), ProgramOf(softmax));
}

}  // namespace
}  // namespace opmill
