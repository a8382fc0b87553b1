// gemm and convolution on every device, within the bound of docs/operators.md.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/base/half.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/matrix_reference.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/matrix_checks.h"
#include "tests/conformance/values.h"
#include "tests/plan_bounds/plan_bounds.h"
#include "tests/support/programs.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using enum DataType;

class MatrixTest : public DeviceTest {
 protected:
  void Expect(const OperatorDesc& desc) { Expect(desc, PlanOptionsForTest(device())); }

  // Devices without plans ignore the options.
  void Expect(const OperatorDesc& desc, const PlanOptions& options) {
    const absl::StatusOr<OperatorDesc> validated = Validate(desc);
    ASSERT_TRUE(validated.ok()) << validated.status() << " " << ToString(desc);
    const absl::StatusOr<OperatorPlan> plan = MakePlan(*validated, options);
    ASSERT_TRUE(plan.ok()) << plan.status() << " " << ToString(*validated);
    EXPECT_EQ(FindPlanMistake(*validated, options, *plan), "") << ToString(*validated);
    const auto compiled = CompilePlanForTest(device(), *validated, *plan);
    ASSERT_TRUE(compiled.ok()) << compiled.status() << " " << ToString(*validated);
    const bool is_cpu = device().info().kind == DeviceKind::kCpu;
    std::vector<ValuePattern> patterns = {ValuePattern::kNumbers};
    if (cases_++ % 4 == 0) patterns.push_back(ValuePattern::kTies);
    for (const ValuePattern values : patterns) {
      const std::vector<Bytes> inputs = InputsOf(*validated, values);
      const auto outputs = RunCompiled(device(), *compiled, *validated, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status() << " " << ToString(*validated);
      EXPECT_EQ(FindProductMistake(*validated, inputs, *outputs, is_cpu), "")
          << ToString(*validated) << " with values " << ToString(values);
    }
  }

 private:
  size_t cases_ = 0;
};

TensorDesc Matrix(DataType type, std::vector<uint32_t> batch, uint32_t rows, uint32_t columns,
                  bool is_transposed) {
  batch.push_back(is_transposed ? columns : rows);
  batch.push_back(is_transposed ? rows : columns);
  return {type, std::move(batch), {}};
}

TEST_P(MatrixTest, MultipliesMatricesOfEveryShape) {
  const uint32_t shapes[][3] = {{1, 1, 1},     {1, 7, 5},    {5, 1, 9},    {13, 33, 17},
                                {12, 32, 385}, {25, 70, 40}, {3, 200, 30}, {64, 64, 64},
                                {1, 300, 50},  {1, 16, 800}, {128, 9, 16}, {31, 130, 12}};
  const std::vector<uint32_t> batches[] = {{}, {2}, {2, 3}, {1, 1}};
  uint32_t i = 0;
  for (const auto& [m, n, k] : shapes) {
    for (uint32_t transforms = 0; transforms < 4; ++transforms, ++i) {
      const DataType type = i % 3 == 1 ? kFloat16 : kFloat32;
      const bool trans_a = (transforms & 1) != 0;
      const bool trans_b = (transforms & 2) != 0;
      const std::vector<uint32_t>& batch = batches[i / 2 % 4];
      GemmDesc desc = {.a = Matrix(type, batch, m, k, trans_a),
                       .b = Matrix(type, batch, k, n, trans_b),
                       .trans_a = MatrixTransform(trans_a),
                       .trans_b = MatrixTransform(trans_b)};
      const TensorDesc output = Matrix(type, batch, m, n, false);
      if (i % 5 == 1) desc.alpha = -0.5f;
      if (i % 7 == 2) desc.beta = 2.5f;
      if (i % 4 != 0) {
        desc.c = output;
        desc.c->strides = PackedStrides(output.sizes);
        const size_t rank = output.sizes.size();
        if (i % 4 == 1) desc.c->strides[rank - 2] = 0;  // one number for each column
        if (i % 4 == 2) desc.c->strides[rank - 1] = 0;  // for each row
        if (i % 8 >= 4) std::fill(desc.c->strides.begin(), desc.c->strides.end() - 2, 0);
      }
      if (i % 6 == 3) Spread(desc.a);
      if (i % 6 == 4) Spread(desc.b);
      if (i % 6 == 5) {
        desc.output = output;
        Spread(*desc.output);
      }
      Expect(desc);
    }
  }
}

std::vector<ConvolutionDesc> Convolutions() {
  using enum ConvolutionDirection;
  using List = std::vector<uint32_t>;
  std::vector<ConvolutionDesc> descs = {
      {.input = Tensor({1, 3, 9, 11}), .filter = Tensor({5, 3, 3, 3})},
      {.input = Tensor({2, 3, 17, 40}),
       .filter = Tensor({16, 3, 3, 3}),
       .bias = Tensor({1, 16, 1, 1}),
       .strides = List{2, 2},
       .start_padding = List{1, 1},
       .end_padding = List{1, 1}},
      // Lines of outputs that nearly fill vectors of their own, or do.
      {.input = Tensor({2, 3, 21, 63}),
       .filter = Tensor({29, 3, 3, 3}),
       .bias = Tensor({1, 29, 1, 1}),
       .strides = List{2, 2}},
      {.input = Tensor({1, 3, 33, 64}),
       .filter = Tensor({40, 3, 7, 7}),
       .strides = List{2, 2},
       .start_padding = List{3, 3},
       .end_padding = List{3, 3}},
      // Pointwise, on images and on single pixels.
      {.input = Tensor({2, 20, 7, 9}), .filter = Tensor({33, 20, 1, 1})},
      {.input = Tensor({1, 48, 1, 1}),
       .filter = Tensor({12, 48, 1, 1}),
       .bias = Tensor({1, 12, 1, 1})},
      {.input = Tensor({3, 6, 8, 8}), .filter = Tensor({4, 6, 1, 1}), .strides = List{2, 3}},
      // One channel in a group.
      {.input = Tensor({2, 5, 12, 37}),
       .filter = Tensor({5, 1, 3, 3}),
       .bias = Tensor({1, 5, 1, 1}),
       .start_padding = List{1, 1},
       .end_padding = List{1, 1},
       .group_count = 5},
      {.input = Tensor({1, 4, 21, 70}),
       .filter = Tensor({8, 1, 5, 5}),
       .strides = List{2, 2},
       .start_padding = List{2, 2},
       .end_padding = List{2, 2},
       .group_count = 4},
      {.input = Tensor({1, 3, 20, 19}),
       .filter = Tensor({3, 1, 3, 2}),
       .strides = List{1, 3},
       .dilations = List{3, 2},
       .start_padding = List{0, 4},
       .end_padding = List{5, 0},
       .group_count = 3},
      // Groups of several channels, dilation, one side padded, more padding than input.
      {.input = Tensor({2, 6, 10, 10}),
       .filter = Tensor({9, 2, 3, 3}),
       .bias = Tensor({1, 9, 1, 1}),
       .dilations = List{2, 1},
       .start_padding = List{3, 0},
       .group_count = 3},
      {.input = Tensor({1, 2, 2, 3}),
       .filter = Tensor({2, 2, 3, 4}),
       .start_padding = List{4, 6},
       .end_padding = List{5, 0}},
      {.input = Tensor({1, 2, 6, 7}),
       .filter = Tensor({3, 2, 3, 2}),
       .mode = ConvolutionMode::kConvolution},
      // So few pixels that output channels fill vectors: lines in pairs, in parts, adjacent ones.
      {.input = Tensor({1, 40, 7, 7}),
       .filter = Tensor({50, 40, 3, 3}),
       .bias = Tensor({1, 50, 1, 1}),
       .start_padding = List{1, 1},
       .end_padding = List{1, 1}},
      {.input = Tensor({1, 48, 5, 20}),
       .filter = Tensor({32, 48, 3, 3}),
       .start_padding = List{1, 1},
       .end_padding = List{1, 1}},
      {.input = Tensor({2, 450, 7, 7}),
       .filter = Tensor({32, 450, 1, 1}),
       .bias = Tensor({1, 32, 1, 1})},
      {.input = Tensor({1, 60, 14, 13}),
       .filter = Tensor({32, 60, 3, 3}),
       .strides = List{2, 2},
       .start_padding = List{1, 1},
       .end_padding = List{1, 1}},
      {.input = Tensor({1, 450, 14, 14}), .filter = Tensor({32, 450, 1, 1}), .strides = List{2, 2}},
      {.input = Tensor({1, 80, 6, 6}),
       .filter = Tensor({32, 40, 3, 3}),
       .start_padding = List{1, 1},
       .end_padding = List{1, 1},
       .group_count = 2},
      {.input = Tensor({1, 20, 2, 7, 7}),
       .filter = Tensor({32, 20, 1, 3, 3}),
       .start_padding = List{0, 1, 1},
       .end_padding = List{0, 1, 1}},
      // One and three spatial dimensions.
      {.input = Tensor({2, 4, 50}), .filter = Tensor({6, 4, 7}), .strides = List{3}},
      {.input = Tensor({1, 3, 5, 6, 7}),
       .filter = Tensor({4, 3, 2, 3, 3}),
       .strides = List{2, 1, 2},
       .start_padding = List{1, 0, 2},
       .end_padding = List{0, 1, 1}},
      {.input = Tensor({1, 2, 5, 6, 7}),
       .filter = Tensor({2, 1, 3, 3, 3}),
       .start_padding = List{1, 1, 1},
       .end_padding = List{1, 1, 1},
       .group_count = 2},
      // Backward.
      {.input = Tensor({1, 3, 5, 6}),
       .filter = Tensor({3, 4, 2, 2}),
       .direction = kBackward,
       .strides = List{2, 2}},
      {.input = Tensor({2, 4, 5, 4}),
       .filter = Tensor({4, 3, 3, 3}),
       .bias = Tensor({1, 6, 1, 1}),
       .direction = kBackward,
       .strides = List{2, 1},
       .dilations = List{1, 2},
       .start_padding = List{1, 0},
       .end_padding = List{0, 1},
       .output_padding = List{1, 0},
       .group_count = 2},
      {.input = Tensor({1, 2, 4, 3}),
       .filter = Tensor({2, 2, 2, 3}),
       .mode = ConvolutionMode::kConvolution,
       .direction = kBackward,
       .strides = List{3, 4}},
      {.input = Tensor({1, 2, 3}),
       .filter = Tensor({2, 2, 2}),
       .direction = kBackward,
       .strides = List{70}},  // more phases than are separate
      {.input = Tensor({1, 2, 3, 3, 2}),
       .filter = Tensor({2, 1, 2, 3, 2}),
       .direction = kBackward,
       .strides = List{2, 1, 2},
       .group_count = 2}};
  return descs;
}

TEST_P(MatrixTest, ConvolvesEveryKindOfImage) {
  for (const ConvolutionDesc& desc : Convolutions()) Expect(desc);
}

TEST_P(MatrixTest, ConvolvesHalvesAndStridedTensors) {
  size_t i = 0;
  for (ConvolutionDesc desc : Convolutions()) {
    desc.input.data_type = desc.filter.data_type = kFloat16;
    if (desc.bias.has_value()) desc.bias->data_type = kFloat16;
    Expect(desc);
    desc.input.data_type = desc.filter.data_type = kFloat32;
    if (desc.bias.has_value()) desc.bias->data_type = kFloat32;
    if (i % 3 == 0) Spread(desc.input);
    if (i % 3 == 1) Spread(desc.filter);
    if (i % 3 == 2) {
      desc.output = *Validate(desc)->outputs[0];
      Spread(*desc.output);
    }
    ++i;
    Expect(desc);
  }
}

// Results so few that plans divide K, and add the sums of its slots.
std::vector<OperatorDesc> FewLongSums(DataType type) {
  using enum ConvolutionDirection;
  const auto tensor = [type](std::vector<uint32_t> sizes) {
    return Tensor(std::move(sizes), type);
  };
  constexpr auto kTransposed = MatrixTransform::kTranspose;
  std::vector<OperatorDesc> descs = {
      // A lane for each result, with every order of adjacent numbers.
      GemmDesc{.a = tensor({1, 1000}),
               .b = tensor({1000, 40}),
               .c = tensor({1, 40}),
               .alpha = -0.5f,
               .beta = 2.5f},
      GemmDesc{.a = tensor({2, 3, 500}), .b = tensor({2, 20, 500}), .trans_b = kTransposed},
      GemmDesc{.a = tensor({200, 701}), .b = tensor({701, 2})},
      GemmDesc{.a = tensor({701, 200}), .b = tensor({701, 2}), .trans_a = kTransposed},
      GemmDesc{.a = tensor({1, 5000}), .b = tensor({5000, 1})},
      ConvolutionDesc{.input = tensor({2, 300, 3, 3}),
                      .filter = tensor({40, 300, 3, 3}),
                      .bias = tensor({1, 40, 1, 1})},
      ConvolutionDesc{.input = tensor({1, 120, 2, 2}),
                      .filter = tensor({120, 2, 2, 2}),
                      .direction = kBackward},
      // Tiles.
      GemmDesc{.a = tensor({40, 521}), .b = tensor({521, 48}), .c = tensor({40, 48})},
      GemmDesc{.a = tensor({2, 3, 260, 33}),
               .b = tensor({2, 3, 260, 35}),
               .trans_a = kTransposed,
               .alpha = 3},
      ConvolutionDesc{.input = tensor({1, 64, 8, 8}),
                      .filter = tensor({24, 64, 3, 3}),
                      .bias = tensor({1, 24, 1, 1}),
                      .start_padding = {1, 1},
                      .end_padding = {1, 1}},
      ConvolutionDesc{.input = tensor({2, 60, 6, 6}),
                      .filter = tensor({16, 30, 3, 3}),
                      .mode = ConvolutionMode::kConvolution,
                      .group_count = 2},
      ConvolutionDesc{.input = tensor({1, 100, 5, 5}),
                      .filter = tensor({100, 8, 3, 3}),
                      .bias = tensor({1, 8, 1, 1}),
                      .direction = kBackward,
                      .strides = {2, 2}}};
  for (OperatorDesc& desc : descs) desc = Validate(desc).value();
  return descs;
}

TEST_P(MatrixTest, DividesLongSumsOfFewResults) {
  const PlanOptions options = PlanOptionsFor(SizeOf(DeviceKind::kSoftware, 0, 0));
  bool is_spread = false;
  for (const DataType type : {kFloat32, kFloat16}) {
    for (OperatorDesc desc : FewLongSums(type)) {
      if (is_spread) Spread(*desc.outputs[0]);
      is_spread = !is_spread;
      const OperatorPlan plan = MakePlan(desc, options).value();
      ASSERT_EQ(plan.passes.size(), 2u) << ToString(desc);
      EXPECT_EQ(plan.kernels[plan.passes[1].dispatches[0].kernel].entry, "Join");
      Expect(desc, options);
    }
    is_spread = !is_spread;
  }
}

TEST_P(MatrixTest, DividesTheSumsOfEachView) {
  PlanOptions options = PlanOptionsFor(SizeOf(DeviceKind::kSoftware, 0, 0));
  options.max_view_elements = 16384;
  const OperatorDesc desc = *Validate(
      GemmDesc{.a = Tensor({3, 30, 260}), .b = Tensor({3, 260, 50}), .c = Tensor({3, 30, 50})});
  const OperatorPlan plan = MakePlan(desc, options).value();
  ASSERT_EQ(plan.passes.size(), 2u);
  EXPECT_GT(plan.passes[1].dispatches.size(), 2u);
  Expect(desc, options);
}

TEST_P(MatrixTest, DividedSumsHaveTheSameBitsEachTime) {
  for (const OperatorDesc& desc : FewLongSums(kFloat32)) {
    const std::vector<Bytes> inputs = InputsOf(desc, ValuePattern::kNumbers);
    const auto once = RunValidated(device(), desc, inputs);
    const auto again = RunValidated(device(), desc, inputs);
    ASSERT_TRUE(once.ok() && again.ok()) << once.status() << again.status();
    EXPECT_TRUE(*once == *again) << ToString(desc);
  }
}

TEST_P(MatrixTest, FillsADeviceWithLargeTiles) {
  Expect(GemmDesc{.a = Tensor({4, 5, 70, 19}), .b = Tensor({4, 5, 19, 130})});
  Expect(ConvolutionDesc{.input = Tensor({20, 3, 9, 8}),
                         .filter = Tensor({66, 3, 2, 2}),
                         .bias = Tensor({1, 66, 1, 1}),
                         .start_padding = {1, 1}});
}

TEST_P(MatrixTest, SumsOfIntegersAreExact) {
  const OperatorDesc desc = *Validate(GemmDesc{.a = Tensor({20, 1000}), .b = Tensor({1000, 40})});
  const std::vector<Bytes> inputs = InputsOf(desc, ValuePattern::kTies);
  const auto outputs = RunValidated(device(), desc, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const std::vector<absl::Span<const std::byte>> spans(inputs.begin(), inputs.end());
  ForEachExactProduct(desc, spans, {}, [&](const Coordinate& at, const ExactProduct& exact) {
    EXPECT_EQ(ElementAt(*desc.outputs[0], (*outputs)[0], at), exact.value);
  });
}

TEST_P(MatrixTest, BetaOfZeroIgnoresC) {
  const OperatorDesc desc =
      *Validate(GemmDesc{.a = Tensor({2, 3}), .b = Tensor({3, 4}), .c = Tensor({2, 4}), .beta = 0});
  std::vector<Bytes> inputs = InputsOf(desc, ValuePattern::kNumbers);
  std::fill(inputs[2].begin(), inputs[2].end(), std::byte{0xFF});  // NaN
  const auto outputs = RunValidated(device(), desc, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(FindProductMistake(desc, inputs, *outputs, false), "");
}

TEST_P(MatrixTest, InfinitiesAndNansSpread) {
  const OperatorDesc desc = *Validate(GemmDesc{.a = Tensor({4, 8}), .b = Tensor({8, 4})});
  for (const ValuePattern values : {ValuePattern::kRareNans, ValuePattern::kRareInfinities}) {
    const std::vector<Bytes> inputs = InputsOf(desc, values);
    const auto outputs = RunValidated(device(), desc, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ(FindProductMistake(desc, inputs, *outputs, false), "") << ToString(values);
  }
}

INSTANTIATE_TEST_SUITE_P(On, MatrixTest, ::testing::ValuesIn(TestDevices()));

#ifdef OPMILL_CPU_DEVICE
TEST(MatrixOnTheProcessor, HasTheSameBitsForEveryNumberOfThreads) {
  std::vector<OperatorDesc> descs = {
      GemmDesc{.a = Tensor({150, 500}), .b = Tensor({500, 300}), .c = Tensor({150, 300})},
      GemmDesc{.a = Tensor({1, 2000}), .b = Tensor({2000, 1500})},
      GemmDesc{
          .a = Tensor({1, 2000}), .b = Tensor({900, 2000}), .trans_b = MatrixTransform::kTranspose},
      GemmDesc{.a = Tensor({12, 128, 32}), .b = Tensor({12, 32, 128})},
      ConvolutionDesc{.input = Tensor({1, 16, 40, 40}),
                      .filter = Tensor({48, 16, 3, 3}),
                      .start_padding = {1, 1},
                      .end_padding = {1, 1}},
      // Few pixels, and more taps than a block has.
      ConvolutionDesc{.input = Tensor({2, 2, 1, 1700}),
                      .filter = Tensor({129, 2, 1, 512}),
                      .bias = Tensor({1, 129, 1, 1}),
                      .strides = {1, 160},
                      .end_padding = {0, 60}},
      ConvolutionDesc{
          .input = Tensor({1, 64, 40, 40}), .filter = Tensor({64, 1, 3, 3}), .group_count = 64}};
  std::vector<std::unique_ptr<Device>> devices;
  for (const uint32_t threads : {1, 2, 4}) devices.push_back(CreateCpuDevice({.threads = threads}));
  for (OperatorDesc& desc : descs) {
    desc = *Validate(desc);
    const std::vector<Bytes> inputs = InputsOf(desc, ValuePattern::kNumbers);
    const auto expected = RunValidated(*devices[0], desc, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(FindProductMistake(desc, inputs, *expected, /*is_tree=*/true), "") << ToString(desc);
    for (const auto& device : devices) {
      const auto outputs = RunValidated(*device, desc, inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_TRUE((*outputs)[0] == (*expected)[0]) << ToString(desc);
    }
  }
}

#endif

}  // namespace
}  // namespace opmill
