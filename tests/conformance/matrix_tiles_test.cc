// 3x3 convolutions that the processor computes by tiles.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/matrix/matrix_reference.h"
#include "tests/conformance/matrix_checks.h"
#include "tests/conformance/values.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

std::vector<ConvolutionDesc> TiledConvolutions() {
  using List = std::vector<uint32_t>;
  return {{.input = Tensor({1, 16, 16, 16}),
           .filter = Tensor({16, 16, 3, 3}),
           .start_padding = List{1, 1},
           .end_padding = List{1, 1}},
          // Bands of which the last one is smaller, and rows that fill no panel.
          {.input = Tensor({1, 16, 31, 45}),
           .filter = Tensor({17, 16, 3, 3}),
           .bias = Tensor({1, 17, 1, 1}),
           .start_padding = List{1, 0},
           .end_padding = List{0, 3}},
          // Several blocks of channels, and inputs that tasks share.
          {.input = Tensor({1, 390, 1, 61}),
           .filter = Tensor({17, 390, 3, 3}),
           .start_padding = List{1, 1},
           .end_padding = List{1, 1}},
          // Groups, planes, and filters from their end.
          {.input = Tensor({1, 32, 2, 14, 15}),
           .filter = Tensor({32, 16, 1, 3, 3}),
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

absl::Span<float> FloatsOf(Bytes& bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// The results of each instruction set.
class TiledConvolutionTest : public ::testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(UseInstructionSetForTest(names_[0]).ok()); }

  std::vector<Bytes> Run(const OperatorDesc& desc, const std::vector<Bytes>& inputs) {
    std::vector<Bytes> results;
    for (const std::string& name : names_) {
      EXPECT_TRUE(UseInstructionSetForTest(name).ok());
      auto outputs = RunValidated(*device_, desc, inputs);
      EXPECT_TRUE(outputs.ok()) << outputs.status();
      if (outputs.ok()) results.push_back(std::move((*outputs)[0]));
    }
    return results;
  }
  void Expect(const OperatorDesc& desc, const std::vector<Bytes>& inputs,
              const MagnitudeOf& magnitude_of = nullptr) {
    EXPECT_EQ(FindProductMistake(desc, inputs, Run(desc, inputs), /*is_tree=*/true, magnitude_of),
              "")
        << ToString(desc);
  }

 private:
  const std::vector<std::string> names_ = InstructionSets();
  const std::unique_ptr<Device> device_ = CreateCpuDevice({.threads = 2});
};

TEST_F(TiledConvolutionTest, IsWithinItsBound) {
  using enum ValuePattern;
  for (const ConvolutionDesc& conv : TiledConvolutions()) {
    const OperatorDesc desc = *Validate(conv);
    for (const ValuePattern values : {kNumbers, kTies, kPositive, kOneLarge, kFactors, kDenormals,
                                      kRareNans, kRareInfinities}) {
      SCOPED_TRACE(ToString(values));
      std::vector<Bytes> inputs = InputsOf(desc, values);
      // Where padding meets such numbers of a filter, results are not defined.
      if (values == kRareNans || values == kRareInfinities) inputs[1] = InputsOf(desc, kNumbers)[1];
      MagnitudeOf magnitude_of;  // numbers of one magnitude need none of its own
      const ConvolutionDesc full = ConvolutionDesc::From(desc);
      if (values != kNumbers) magnitude_of = TileMagnitudes(full, inputs);
      Expect(desc, inputs, magnitude_of);
    }
    ConvolutionDesc half = conv;
    half.input.data_type = half.filter.data_type = DataType::kFloat16;
    if (half.bias.has_value()) half.bias->data_type = DataType::kFloat16;
    Expect(*Validate(half), InputsOf(*Validate(half), kNumbers));
    ConvolutionDesc spread = conv;
    spread.output = *desc.outputs[0];
    Spread(*spread.output);
    Spread(spread.input);
    Spread(spread.filter);
    Expect(*Validate(spread), InputsOf(*Validate(spread), kNumbers));
  }
}

// Without tiles where they might overflow, and within the bound of other convolutions.
TEST_F(TiledConvolutionTest, TakesHugeNumbers) {
  for (const ConvolutionDesc& conv : TiledConvolutions()) {
    const OperatorDesc desc = *Validate(conv);
    const std::vector<Bytes> numbers = InputsOf(desc, ValuePattern::kNumbers);
    for (const auto& factors :
         {std::array{1e36f, 1e-30f}, {1e-30f, 1e36f}, {0x1p40f, 0x1p40f}, {0x1p54f, 0x1p54f}}) {
      std::vector<Bytes> inputs = numbers;
      for (size_t i = 0; i < factors.size(); ++i) {
        for (float& number : FloatsOf(inputs[i])) number *= factors[i];
      }
      Expect(desc, inputs);
    }
    for (const size_t i : {0, 1}) {
      std::vector<Bytes> inputs = numbers;
      FloatsOf(inputs[i])[FloatsOf(inputs[i]).size() / 2] = 1e38f;
      Expect(desc, inputs);
    }
  }
}

TEST_F(TiledConvolutionTest, HasTheSameBitsInEveryBatch) {
  constexpr size_t kImages = 4;
  const auto image_of = [](const Bytes& all, size_t i) {
    const size_t size = all.size() / kImages;
    const absl::Span<const std::byte> image = absl::MakeConstSpan(all).subspan(i * size, size);
    return Bytes(image.begin(), image.end());
  };
  for (ConvolutionDesc conv : TiledConvolutions()) {
    const OperatorDesc one = *Validate(conv);
    conv.input.sizes[0] = kImages;
    const OperatorDesc all = *Validate(conv);
    for (const auto& [input, odd] :
         {std::pair<size_t, float>{0, 1e38f}, {0, HUGE_VALF}, {0, NAN}, {1, 1e38f}}) {
      std::vector<Bytes> inputs = InputsOf(all, ValuePattern::kNumbers);
      FloatsOf(inputs[input])[FloatsOf(inputs[input]).size() / 8 * 5] = odd;  // of image 2
      const std::vector<Bytes> results = Run(all, inputs);
      for (size_t i = 0; i < kImages; ++i) {
        std::vector<Bytes> own = inputs;
        own[0] = image_of(inputs[0], i);
        const std::vector<Bytes> expected = Run(one, own);
        for (size_t s = 0; s < results.size(); ++s) {
          EXPECT_TRUE(image_of(results[s], i) == expected[s])
              << ToString(one) << " with " << odd << ", image " << i << ", instruction set " << s;
        }
      }
    }
  }
}

}  // namespace
}  // namespace opmill
