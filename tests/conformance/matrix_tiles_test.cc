// 3x3 convolutions that the processor computes by tiles.
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/matrix_reference.h"
#include "tests/conformance/matrix_checks.h"
#include "tests/conformance/values.h"
#include "tests/support/programs.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

std::vector<ConvolutionDesc> TiledConvolutions() {
  using List = std::vector<uint32_t>;
  return {{.input = Tensor({1, 16, 16, 16}),
           .filter = Tensor({16, 16, 3, 3}),
           .start_padding = List{1, 1},
           .end_padding = List{1, 1}},
          // Bands of which the last one is smaller, and rows that fill no panel.
          {.input = Tensor({1, 20, 31, 45}),
           .filter = Tensor({29, 20, 3, 3}),
           .bias = Tensor({1, 29, 1, 1}),
           .start_padding = List{1, 0},
           .end_padding = List{0, 3}},
          // Several blocks of channels, and inputs that tasks share.
          {.input = Tensor({1, 390, 13, 13}),
           .filter = Tensor({17, 390, 3, 3}),
           .start_padding = List{1, 1},
           .end_padding = List{1, 1}},
          // Groups, planes, and filters from their end.
          {.input = Tensor({1, 40, 2, 18, 17}),
           .filter = Tensor({32, 20, 1, 3, 3}),
           .bias = Tensor({1, 32, 1, 1, 1}),
           .mode = ConvolutionMode::kConvolution,
           .start_padding = List{1, 2, 0},
           .group_count = 2}};
}

// The sum of magnitudes of products as if all inputs of a tile, and all taps of a filter, were as
// large as the largest one of their channel.
class TileMagnitudes {
 public:
  TileMagnitudes(const ConvolutionDesc& desc, const std::vector<Bytes>& inputs)
      : desc_(desc), inputs_(inputs) {}

  double operator()(const Coordinate& at, const ExactProduct& exact) {
    const size_t y = at.size() - 2;
    const size_t rank = desc_.input.sizes.size();
    std::vector<uint32_t> key(at.begin(), at.begin() + static_cast<ptrdiff_t>(rank));
    key[y] /= 4;
    key[y + 1] /= 4;
    auto [found, is_new] = sums_.try_emplace(key, 0.0);
    if (is_new) found->second = SumOf(key);
    return std::isfinite(found->second) ? found->second + exact.sum_of_magnitudes
                                        : exact.sum_of_magnitudes;
  }

 private:
  double SumOf(const std::vector<uint32_t>& tile) const {
    const uint32_t channels = desc_.filter.sizes[1];
    const uint32_t group = tile[1] / (desc_.filter.sizes[0] / desc_.group_count);
    double sum = 0;
    for (uint32_t c = 0; c < channels; ++c) {
      sum += 9 * LargestInput(tile, group * channels + c) * LargestTap(tile[1], c);
    }
    return sum;
  }
  double LargestInput(const std::vector<uint32_t>& tile, uint32_t channel) const {
    const size_t y = tile.size() - 2;
    Coordinate at(tile.begin(), tile.end());
    at[1] = channel;
    for (size_t d = 2; d < y; ++d) {  // planes, whose filters have one
      const uint32_t padding = desc_.start_padding[d - 2];
      if (at[d] < padding || at[d] - padding >= desc_.input.sizes[d]) return 0;
      at[d] -= padding;
    }
    double largest = 0;
    for (uint32_t i = 0; i < 36; ++i) {
      at[y] = tile[y] * 4 + i / 6 - desc_.start_padding[y - 2];
      at[y + 1] = tile[y + 1] * 4 + i % 6 - desc_.start_padding[y - 1];
      if (at[y] >= desc_.input.sizes[y] || at[y + 1] >= desc_.input.sizes[y + 1]) continue;
      const double value = std::abs(ElementAt(desc_.input, inputs_[0], at));
      if (!(value <= largest)) largest = value;
    }
    return largest;
  }
  double LargestTap(uint32_t row, uint32_t channel) const {
    double largest = 0;
    for (uint32_t t = 0; t < 9; ++t) {
      Coordinate at(desc_.filter.sizes.size(), 0);
      at[0] = row;
      at[1] = channel;
      at[at.size() - 2] = t / 3;
      at[at.size() - 1] = t % 3;
      const double value = std::abs(ElementAt(desc_.filter, inputs_[1], at));
      if (!(value <= largest)) largest = value;
    }
    return largest;
  }

  const ConvolutionDesc& desc_;
  const std::vector<Bytes>& inputs_;
  std::map<std::vector<uint32_t>, double> sums_;
};

void ExpectTiles(Device& device, const OperatorDesc& desc, ValuePattern values) {
  using enum ValuePattern;
  std::vector<Bytes> inputs = InputsOf(desc, values);
  // Where padding meets such numbers of a filter, results are not defined.
  if (values == kRareNans || values == kRareInfinities) inputs[1] = InputsOf(desc, kNumbers)[1];
  const auto outputs = RunValidated(device, desc, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  MagnitudeOf magnitude_of;  // numbers of one magnitude need none of its own
  const ConvolutionDesc conv = ConvolutionDesc::From(desc);
  if (values != kNumbers) magnitude_of = TileMagnitudes(conv, inputs);
  EXPECT_EQ(FindProductMistake(desc, inputs, (*outputs)[0], /*is_tree=*/true, magnitude_of), "")
      << ToString(desc) << " with values " << ToString(values);
}

TEST(MatrixOnTheProcessor, ConvolvesByTiles) {
  using enum ValuePattern;
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const ConvolutionDesc& desc : TiledConvolutions()) {
    for (const ValuePattern values : {kNumbers, kTies, kPositive, kOneLarge, kFactors, kDenormals,
                                      kRareNans, kRareInfinities}) {
      ExpectTiles(*device, *Validate(desc), values);
    }
    ConvolutionDesc half = desc;
    half.input.data_type = half.filter.data_type = DataType::kFloat16;
    if (half.bias.has_value()) half.bias->data_type = DataType::kFloat16;
    ExpectTiles(*device, *Validate(half), kNumbers);
    ConvolutionDesc spread = desc;
    spread.output = *Validate(desc)->outputs[0];
    Spread(*spread.output);
    Spread(spread.input);
    Spread(spread.filter);
    ExpectTiles(*device, *Validate(spread), kNumbers);
  }
}

}  // namespace
}  // namespace opmill
