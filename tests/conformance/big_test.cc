// Tensors of gigabytes, whose offsets exceed 2^31 and which need several views, compared with host
// loops that share no code with the kernels or the reference. Prints the time of each.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/support/free_memory.h"
#include "tests/support/quantities.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

constexpr uint64_t kMebi = uint64_t{1} << 20;

uint32_t Noise(uint64_t index) {
  uint64_t z = (index + 1) * 0x9E37'79B9'7F4A'7C15;
  return static_cast<uint32_t>((z ^ (z >> 29)) >> 16);
}

std::vector<std::string> BigTestDevices() {
  std::vector<std::string> names = {"Software"};
  if (HasHardwareAdapter()) names.push_back("Hardware");
  return names;
}

// SetUp and Prepare may skip the test; a test returns at once if Prepare is false.
class BigTest : public DeviceTest {
 protected:
  [[nodiscard]] bool Prepare(const OperatorDesc& desc) {
    const auto validated = Validate(desc);
    EXPECT_TRUE(validated.ok()) << validated.status();
    if (!validated.ok()) return false;
    auto plan = MakePlan(*validated, PlanOptionsForTest(device()));
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return false;
    moved_bytes_ = plan->input_bytes[0];
    for (const uint64_t size_bytes : plan->output_bytes) moved_bytes_ += size_bytes;
    const uint64_t needed = moved_bytes_ + plan->scratch_bytes + 512 * kMebi;
    const uint64_t free = FreeMemoryBytes();
    if (free < needed) {
      Skip(needed, free);
      return false;
    }
    return Allocate(*validated, *std::move(plan));
  }

  template <typename T>
  T* Input() {
    return reinterpret_cast<T*>(bindings_.inputs[0].bytes().data());
  }
  template <typename T>
  const T* Output(size_t number = 0) {
    return reinterpret_cast<const T*>(bindings_.outputs[number].bytes().data());
  }
  uint64_t ElementCountOfInput() { return ElementCount(compiled_->program().values[0].tensor); }

  // Input()[i] = value(i).
  template <typename T, typename Value>
  void Fill(Value value) {
    T* const input = Input<T>();
    const uint64_t count = ElementCountOfInput();
    for (uint64_t i = 0; i < count; ++i) input[i] = static_cast<T>(value(i));
  }

  // Runs twice, because the first run compiles and touches memory for the first time.
  void Run(int times = 2) {
    for (int i = 0; i < times; ++i) {
      for (const Range& output : bindings_.outputs) {
        std::memset(output.bytes().data(), 0xCD, output.bytes().size());
      }
      const absl::Time began = absl::Now();
      const absl::StatusOr<RunStatistics> result = device().RunAndWait(compiled_, bindings_);
      const double seconds = absl::ToDoubleSeconds(absl::Now() - began);
      ASSERT_TRUE(result.ok()) << result.status();
      std::cout << absl::StrFormat("%-6s %7.1f ms %6.2f GB/s  %s\n", i == 0 ? "first" : "again",
                                   seconds * 1e3, static_cast<double>(moved_bytes_) / seconds / 1e9,
                                   ToString(compiled_->program()));
    }
  }

 private:
  void Skip(uint64_t needed, uint64_t free) {
    GTEST_SKIP() << "needs " << needed / kMebi << " MiB of memory; " << free / kMebi
                 << " MiB are free";
  }

  bool Allocate(const OperatorDesc& desc, const OperatorPlan& plan) {
    auto compiled = CompilePlanForTest(device(), desc, plan);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return false;
    compiled_ = *std::move(compiled);
    auto input = device().Allocate(plan.input_bytes[0], Residency::kUpload);
    EXPECT_TRUE(input.ok()) << input.status();
    if (!input.ok()) return false;
    bindings_.inputs = {*std::move(input)};
    for (const uint64_t size_bytes : plan.output_bytes) {
      auto output = device().Allocate(size_bytes, Residency::kReadback);
      EXPECT_TRUE(output.ok()) << output.status();
      if (!output.ok()) return false;
      bindings_.outputs.push_back(*std::move(output));
    }
    return true;
  }

  uint64_t moved_bytes_ = 0;
  std::shared_ptr<const CompiledProgram> compiled_;
  Bindings bindings_;
};

TensorDesc Packed(DataType type, std::vector<uint32_t> sizes) {
  return {type, std::move(sizes), {}};
}

ArgReduceDesc ArgMax(TensorDesc input, std::vector<uint32_t> axes, AxisDirection direction) {
  ArgReduceDesc desc;
  desc.extreme = Extreme::kMax;
  desc.input = std::move(input);
  desc.axes = std::move(axes);
  desc.axis_direction = direction;
  return desc;
}

ReduceDesc Reduce(ReduceFunction function, TensorDesc input, std::vector<uint32_t> axes) {
  ReduceDesc desc;
  desc.function = function;
  desc.input = std::move(input);
  desc.axes = std::move(axes);
  return desc;
}

TEST_P(BigTest, SumsAGibibyteOfFloats) {
  if (!Prepare(Reduce(ReduceFunction::kSum, Packed(DataType::kFloat32, {1u << 28}), {0}))) return;
  double sum = 0;
  Fill<float>([&](uint64_t i) {
    const float x = static_cast<float>(Noise(i)) * 0x1p-32f;
    sum += x;
    return x;
  });
  Run();
  EXPECT_NEAR(Output<float>()[0], sum, 2 * double{FLT_EPSILON} * (28 + 4) * sum);
}

TEST_P(BigTest, SumsAGibibyteOfIntegersExactly) {
  if (!Prepare(
          Reduce(ReduceFunction::kSum, Packed(DataType::kFloat32, {1u << 14, 1u << 14}), {0, 1}))) {
    return;
  }
  int64_t sum = 0;
  Fill<float>([&](uint64_t i) {
    const int64_t x = static_cast<int64_t>(Noise(i) % 7) - 3;
    sum += x;
    return x;
  });
  Run();
  EXPECT_EQ(Output<float>()[0], static_cast<float>(sum));
}

TEST_P(BigTest, FindsTheLastOfEqualMaximaInOneRow) {
  constexpr uint32_t kCount = 1u << 27;
  if (!Prepare(ArgMax(Packed(DataType::kFloat32, {1, kCount}), {1}, AxisDirection::kDecreasing))) {
    return;
  }
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i) >> 8); });
  const float* const input = Input<float>();
  uint32_t last = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    if (input[i] >= input[last]) last = i;
  }
  Run();
  EXPECT_EQ(Output<uint32_t>()[0], last);
}

TEST_P(BigTest, FindsMaximaOfSixteenMillionRows) {
  constexpr uint32_t kRows = 1u << 24;
  if (!Prepare(ArgMax(Packed(DataType::kFloat32, {kRows, 4}), {1}, AxisDirection::kIncreasing))) {
    return;
  }
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i) % 5); });
  Run();
  const float* const input = Input<float>();
  uint64_t wrong = 0;
  for (uint64_t row = 0; row < kRows; ++row) {
    const float* const first = input + row * 4;
    wrong += Output<uint32_t>()[row] != std::max_element(first, first + 4) - first;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(BigTest, SumsSixteenMillionRows) {
  constexpr uint32_t kRows = 1u << 24;
  if (!Prepare(Reduce(ReduceFunction::kSum, Packed(DataType::kFloat32, {kRows, 4}), {1}))) return;
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i) % 1000); });
  Run();
  const float* const input = Input<float>();
  uint64_t wrong = 0;
  for (uint64_t row = 0; row < kRows; ++row) {
    const float* const x = input + row * 4;
    wrong += Output<float>()[row] != x[0] + x[1] + x[2] + x[3];
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(BigTest, TakesTheTopTenOfSixtyFourMillion) {
  constexpr uint32_t kCount = 1u << 26;
  constexpr uint32_t kTop = 10;
  TopKDesc desc;
  desc.input = Packed(DataType::kFloat32, {kCount});
  desc.k = kTop;
  if (!Prepare(desc)) return;
  // Only 2^24 different values, so that there are ties among the largest.
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i) >> 8); });
  const float* const input = Input<float>();
  std::vector<std::pair<float, uint32_t>> best;  // by descending value, then by ascending index
  for (uint32_t i = 0; i < kCount; ++i) {
    if (best.size() == kTop && input[i] <= best.back().first) continue;
    const auto place =
        std::find_if(best.begin(), best.end(), [&](const auto& b) { return b.first < input[i]; });
    best.insert(place, {input[i], i});
    if (best.size() > kTop) best.pop_back();
  }
  Run();
  for (uint32_t rank = 0; rank < kTop; ++rank) {
    EXPECT_EQ(Output<float>(0)[rank], best[rank].first) << "rank " << rank;
    EXPECT_EQ(Output<uint32_t>(1)[rank], best[rank].second) << "rank " << rank;
  }
}

TEST_P(BigTest, SortsAllOfFourMillion) {
  constexpr uint32_t kCount = 1u << 22;
  TopKDesc desc;
  desc.input = Packed(DataType::kFloat32, {kCount});
  desc.k = kCount;
  if (!Prepare(desc)) return;
  // Only 2^20 different values, so that all elements have equals.
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i) >> 12); });
  Run(1);
  const float* const input = Input<float>();
  const float* const values = Output<float>(0);
  const uint32_t* const indices = Output<uint32_t>(1);
  // Indices that are strictly in order are all different, and so every index is there once.
  uint64_t wrong = 0;
  for (uint64_t rank = 0; rank < kCount; ++rank) {
    const bool is_after = rank == 0 || values[rank] < values[rank - 1] ||
                          (values[rank] == values[rank - 1] && indices[rank] > indices[rank - 1]);
    wrong += !is_after || indices[rank] >= kCount || values[rank] != input[indices[rank]];
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(BigTest, PutsOneOneAmongSixtyFourMillion) {
  constexpr uint32_t kCount = 1u << 26;
  HardmaxDesc desc;
  desc.input = Packed(DataType::kFloat32, {kCount});
  desc.axes = {0};
  if (!Prepare(desc)) return;
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i)); });
  const float* const input = Input<float>();
  const uint64_t first = static_cast<uint64_t>(std::max_element(input, input + kCount) - input);
  Run();
  const float* const output = Output<float>();
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kCount; ++i) wrong += output[i] != (i == first ? 1.0f : 0.0f);
  EXPECT_EQ(wrong, 0u);
}

class ThreeGibibytes : public BigTest {
 protected:
  static constexpr uint64_t kBytes = 3 * kGibibyte;
  [[nodiscard]] bool PrepareMax(uint32_t rows, uint32_t axis) {
    const TensorDesc input = Packed(DataType::kInt8, {rows, static_cast<uint32_t>(kBytes / rows)});
    if (!Prepare(Reduce(ReduceFunction::kMax, input, {axis}))) return false;
    // The largest value is rare, so that every stretch of the row matters.
    uint32_t* const words = Input<uint32_t>();
    for (uint64_t i = 0; i < kBytes / 4; ++i) words[i] = Noise(i) | 0x80808080u;
    return true;
  }
};

TEST_P(ThreeGibibytes, MaximaOfColumns) {
  constexpr uint64_t kRows = 12, kColumns = kBytes / kRows;
  if (!PrepareMax(kRows, 0)) return;
  Run(1);
  const int8_t* const input = Input<int8_t>();
  const int8_t* const output = Output<int8_t>();
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kColumns; ++i) {
    int8_t largest = input[i];
    for (uint64_t row = 1; row < kRows; ++row) {
      largest = std::max(largest, input[row * kColumns + i]);
    }
    wrong += output[i] != largest;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(ThreeGibibytes, MaximaOfRows) {
  if (!PrepareMax(3, 1)) return;
  // The last element of each row is unique.
  for (uint64_t row = 0; row < 3; ++row) {
    Input<int8_t>()[(row + 1) * kBytes / 3 - 1] = static_cast<int8_t>(100 + row);
  }
  Run();
  for (uint64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(Output<int8_t>()[row], static_cast<int8_t>(100 + row)) << "row " << row;
  }
}

TEST_P(ThreeGibibytes, Int32IndexPastTwoToThe31Wraps) {
  ArgReduceDesc desc = ArgMax(Packed(DataType::kInt8, {3, static_cast<uint32_t>(kBytes / 3)}),
                              {0, 1}, AxisDirection::kIncreasing);
  desc.output = Packed(DataType::kInt32, {1, 1});
  if (!Prepare(desc)) return;
  int8_t* const input = Input<int8_t>();
  std::fill(input, input + kBytes, int8_t{-1});
  input[kBytes - 7] = 1;
  Run();
  EXPECT_EQ(Output<int32_t>()[0], static_cast<int32_t>(static_cast<uint32_t>(kBytes - 7)));
  EXPECT_LT(Output<int32_t>()[0], 0);
}

TEST_P(BigTest, FindsMinimaOfManyRows) {
  constexpr uint32_t kRows = 100'003;
  constexpr uint32_t kLength = 1001;
  ArgReduceDesc desc =
      ArgMax(Packed(DataType::kUint16, {kRows, kLength}), {1}, AxisDirection::kIncreasing);
  desc.extreme = Extreme::kMin;
  if (!Prepare(desc)) return;
  Fill<uint16_t>([](uint64_t i) { return Noise(i); });
  Run();
  const uint16_t* const input = Input<uint16_t>();
  uint64_t wrong = 0;
  for (uint64_t row = 0; row < kRows; ++row) {
    const uint16_t* const first = input + row * kLength;
    wrong += Output<uint32_t>()[row] != std::min_element(first, first + kLength) - first;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(BigTest, FindsMaximaOfAMiddleAxis) {
  constexpr uint32_t kOuter = 64, kMiddle = 1000, kInner = 1027;
  if (!Prepare(ArgMax(Packed(DataType::kFloat32, {kOuter, kMiddle, kInner}), {1},
                      AxisDirection::kIncreasing))) {
    return;
  }
  Fill<float>([](uint64_t i) { return static_cast<float>(Noise(i) % 100'000); });
  Run();
  uint64_t wrong = 0;
  std::vector<uint32_t> best(kInner);
  for (uint32_t outer = 0; outer < kOuter; ++outer) {
    const float* const plane = Input<float>() + uint64_t{outer} * kMiddle * kInner;
    std::fill(best.begin(), best.end(), 0);
    for (uint32_t m = 1; m < kMiddle; ++m) {
      for (uint32_t i = 0; i < kInner; ++i) {
        if (plane[m * kInner + i] > plane[best[i] * kInner + i]) best[i] = m;
      }
    }
    const uint32_t* const output = Output<uint32_t>() + uint64_t{outer} * kInner;
    for (uint32_t i = 0; i < kInner; ++i) wrong += output[i] != best[i];
  }
  EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(On, BigTest, ::testing::ValuesIn(BigTestDevices()));
INSTANTIATE_TEST_SUITE_P(On, ThreeGibibytes, ::testing::ValuesIn(BigTestDevices()));

}  // namespace
}  // namespace opmill
