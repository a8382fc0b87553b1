// The reference itself, compared with results computed by hand.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/reduction/reduction_reference.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;

using Bits = std::vector<uint64_t>;
using Numbers = std::vector<double>;
using Output = std::pair<TensorDesc, std::vector<std::byte>>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kFloatMax = std::numeric_limits<float>::max();

// Outputs are initialized with garbage, so that unwritten bytes are noticed.
std::vector<Output> RunReference(const OperatorDesc& desc, const std::vector<std::byte>& input) {
  const absl::StatusOr<OperatorDesc> validated = Validate(desc);
  EXPECT_TRUE(validated.ok()) << validated.status();
  if (!validated.ok()) return {};
  std::vector<Output> outputs;
  for (const TensorDesc& output : OutputsOf(*validated)) {
    outputs.emplace_back(output, std::vector<std::byte>(RequiredBytes(output), std::byte{0xEE}));
  }
  std::vector<absl::Span<std::byte>> spans;
  for (Output& output : outputs) spans.push_back(absl::MakeSpan(output.second));
  EXPECT_EQ(ReferenceRun(*validated, {absl::MakeConstSpan(input)}, spans), absl::OkStatus());
  return outputs;
}

Bits ReduceBits(ReduceFunction function, DataType type, const Bits& input) {
  const TensorDesc desc = {type, {static_cast<uint32_t>(input.size())}, {}};
  const auto outputs =
      RunReference(ReduceDesc{function, desc, std::nullopt, {0}}, BytesOfBits(desc, input));
  return BitsIn(outputs[0].first, outputs[0].second);
}

double ReduceNumbers(ReduceFunction function, DataType type, const Numbers& input) {
  Bits bits;
  for (const double number : input) bits.push_back(BitsOf(type, number));
  return NumberOf(type, ReduceBits(function, type, bits)[0]);
}

uint64_t ArgBits(Extreme extreme, AxisDirection direction, DataType type, const Bits& input) {
  const TensorDesc desc = {type, {static_cast<uint32_t>(input.size())}, {}};
  const auto outputs = RunReference(ArgReduceDesc{extreme, desc, std::nullopt, {0}, direction},
                                    BytesOfBits(desc, input));
  return BitsIn(outputs[0].first, outputs[0].second)[0];
}

std::pair<Bits, Bits> TopKBits(AxisDirection direction, DataType type, const Bits& input) {
  const uint32_t size = static_cast<uint32_t>(input.size());
  const TensorDesc desc = {type, {size}, {}};
  const auto outputs = RunReference(TopKDesc{desc, std::nullopt, std::nullopt, 0, size, direction},
                                    BytesOfBits(desc, input));
  return {BitsIn(outputs[0].first, outputs[0].second), BitsIn(outputs[1].first, outputs[1].second)};
}

TEST(ReferenceReduce, ComputesEveryFunctionOfFloats) {
  struct Row {
    ReduceFunction function;
    double result;
  };
  const Numbers input = {1, -2, 3, 4};
  const Row rows[] = {
      {ReduceFunction::kAverage, 1.5},
      {ReduceFunction::kL1, 10},
      {ReduceFunction::kL2, std::sqrt(30)},
      {ReduceFunction::kLogSum, std::log(6)},
      {ReduceFunction::kLogSumExp,
       std::log(std::exp(1) + std::exp(-2) + std::exp(3) + std::exp(4))},
      {ReduceFunction::kMax, 4},
      {ReduceFunction::kMin, -2},
      {ReduceFunction::kMultiply, -24},
      {ReduceFunction::kSum, 6},
      {ReduceFunction::kSumSquare, 30},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ReduceNumbers(row.function, DataType::kFloat32, input),
              static_cast<float>(row.result))
        << ToString(row.function);
    const DataType half = DataType::kFloat16;
    EXPECT_EQ(ReduceNumbers(row.function, half, input), NumberOf(half, BitsOf(half, row.result)))
        << ToString(row.function);
  }
}

TEST(ReferenceReduce, HandlesTheEdgesOfFloats) {
  using enum ReduceFunction;
  struct Row {
    ReduceFunction function;
    DataType type;
    Numbers input;
    double result;
  };
  const DataType f32 = DataType::kFloat32;
  const DataType f16 = DataType::kFloat16;
  const Row rows[] = {
      {kLogSumExp, f32, {100}, 100},
      {kLogSumExp, f32, {-100}, -100},
      {kLogSumExp, f16, {60000, 60000}, 60000},
      {kLogSumExp, f32, {-kInf, -kInf}, -kInf},
      {kLogSumExp, f32, {-kInf, 7}, 7},
      {kLogSumExp, f32, {kInf, -kInf, 1}, kInf},
      {kLogSumExp, f32, {kInf, kNan}, kNan},
      {kLogSum, f32, {-1}, kNan},
      {kLogSum, f32, {1, -1}, -kInf},
      {kLogSum, f32, {kInf}, kInf},
      {kAverage, f32, {kFloatMax, kFloatMax}, kFloatMax},
      {kAverage, f16, {65504, 65504, 65504}, 65504},
      {kAverage, f32, {kInf, -kInf}, kNan},
      {kSum, f32, {kFloatMax, kFloatMax}, kInf},
      {kSum, f16, {65504, 65504}, kInf},
      {kSum, f16, {65504, 15}, 65504},  // 65519 is below the middle to 65536
      {kSum, f16, {65504, 16}, kInf},   // the middle goes to even
      {kSum, f16, {2048, 1}, 2048},     // ties to even, down
      {kSum, f16, {2048, 1, 2}, 2052},  // ties to even, up: one rounding, at the store
      {kSum, f16, {65504, 65504, -65504}, 65504},
      {kSum, f32, {kNan, 1}, kNan},
      {kSum, f32, {1e30, 1, -1e30}, 1},
      {kSumSquare, f32, {1e20}, kInf},
      {kSumSquare, f16, {300}, kInf},
      {kL2, f32, {1e20}, kInf},
      {kL2, f32, {1e19, 1e19}, static_cast<float>(std::sqrt(2) * static_cast<float>(1e19))},
      {kL2, f16, {300, 400}, 500},
      {kL2, f16, {65504}, 65504},
      {kL1, f32, {-kInf, 1}, kInf},
      {kMultiply, f32, {1e30, 1e30}, kInf},
      {kMultiply, f32, {0, kInf}, kNan},
      {kMultiply, f32, {-0.0, 5}, -0.0},
  };
  for (const Row& row : rows) {
    const double result = ReduceNumbers(row.function, row.type, row.input);
    const std::string name = absl::StrCat(ToString(row.function), " of ", ToString(row.type));
    if (std::isnan(row.result)) {
      EXPECT_TRUE(std::isnan(result)) << name << " gives " << result;
    } else {
      EXPECT_EQ(result, row.result) << name;
      EXPECT_EQ(std::signbit(result), std::signbit(row.result)) << name;
    }
  }
}

TEST(ReferenceReduce, KeepsAProductThatIsFiniteInTheEnd) {
  // 500 factors of 1e30, then 500 of 1e-30: intermediate products exceed the range of a double.
  Numbers factors(1000, 1e30f);
  std::fill(factors.begin() + 500, factors.end(), 1 / double{1e30f});
  const double product = ReduceNumbers(ReduceFunction::kMultiply, DataType::kFloat32, factors);
  EXPECT_GT(product, 0.99);
  EXPECT_LT(product, 1.01);
}

TEST(ReferenceReduce, SumsMoreExactlyThanADoubleWould) {
  Numbers numbers = {1e16};
  numbers.resize(4097, 1);
  numbers.push_back(-1e16);
  // FLOAT32's 1e16, not the double's; it cancels.
  EXPECT_EQ(ReduceNumbers(ReduceFunction::kSum, DataType::kFloat32, numbers), 4096);
}

TEST(ReferenceReduce, GivesExtremesThatDoNotDependOnOrder) {
  using enum ReduceFunction;
  struct Row {
    ReduceFunction function;
    DataType type;
    Bits input;
    uint64_t result;
  };
  const DataType f32 = DataType::kFloat32;
  const DataType f16 = DataType::kFloat16;
  const Row rows[] = {
      {kMin, f32, {0x00000000, 0x80000000}, 0x80000000},
      {kMin, f32, {0x80000000, 0x00000000}, 0x80000000},
      {kMax, f32, {0x00000000, 0x80000000}, 0x00000000},
      {kMax, f32, {0x80000000, 0x00000000}, 0x00000000},
      {kMax, f16, {0x8000, 0x0000}, 0x0000},
      {kMax, f32, {0x3F800000, 0xFFC12345, 0x7F800000}, 0x7FC00000},
      {kMin, f32, {0xFF800001, 0xFF800000}, 0x7FC00000},
      {kMin, f16, {0x3C00, 0xFE01}, 0x7E00},
      {kMin, f32, {0x00000001, 0x00000002}, 0x00000001},  // denormals survive
      {kMax, f32, {0x80000001, 0x80000002}, 0x80000001},
      {kMax, f16, {0x0001, 0x0000}, 0x0001},
      {kMin, f32, {0x7F800000}, 0x7F800000},
      {kMin, DataType::kInt8, {0x7F, 0x80, 0x00}, 0x80},
      {kMax, DataType::kInt8, {0x7F, 0x80, 0x00}, 0x7F},
      {kMax, DataType::kUint8, {0x7F, 0x80, 0x00}, 0x80},
      {kMin, DataType::kInt16, {0xFFFF, 0x0001}, 0xFFFF},
      {kMax, DataType::kUint16, {0xFFFF, 0x0001}, 0xFFFF},
      {kMin, DataType::kInt32, {0x80000000, 0x7FFFFFFF}, 0x80000000},
      {kMax, DataType::kInt64, {0x8000000000000000, 0x1FFFFFFFF}, 0x1FFFFFFFF},
      {kMax, DataType::kUint64, {0x8000000000000000, 0x1FFFFFFFF}, 0x8000000000000000},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(ReduceBits(row.function, row.type, row.input), ElementsAre(row.result))
        << ToString(row.function) << " of " << ToString(row.type);
  }
}

TEST(ReferenceReduce, WrapsIntegers) {
  using enum ReduceFunction;
  struct Row {
    ReduceFunction function;
    DataType type;
    Bits input;
    uint64_t result;
  };
  const Row rows[] = {
      {kL1, DataType::kInt32, {0x80000000}, 0x80000000},
      {kL1, DataType::kInt64, {0x8000000000000000}, 0x8000000000000000},
      {kL1, DataType::kInt32, {0xFFFFFFFF, 0x00000002}, 3},
      {kL1, DataType::kUint32, {0xFFFFFFFF, 0x00000002}, 1},
      {kSum, DataType::kInt32, {0x7FFFFFFF, 1}, 0x80000000},
      {kSum, DataType::kUint64, {0xFFFFFFFFFFFFFFFF, 2}, 1},
      {kMultiply, DataType::kInt32, {0x10001, 0x10001}, 0x20001},
      {kMultiply, DataType::kInt64, {0xFFFFFFFFFFFFFFFF, 5}, 0xFFFFFFFFFFFFFFFB},
      {kMultiply, DataType::kUint64, {0x100000001, 0x100000001}, 0x200000001},
      {kSumSquare, DataType::kInt32, {0xFFFFFFFD, 0x10000}, 9},
      {kSumSquare, DataType::kUint64, {0x100000000, 3}, 9},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(ReduceBits(row.function, row.type, row.input), ElementsAre(row.result))
        << ToString(row.function) << " of " << ToString(row.type);
  }
}

TEST(ReferenceArgReduce, PicksByDirectionAmongEqualsAndNansFirst) {
  struct Row {
    DataType type;
    Bits input;
    // argmin increasing, argmin decreasing, argmax increasing, argmax decreasing
    std::vector<uint64_t> results;
  };
  const DataType f32 = DataType::kFloat32;
  const Row rows[] = {
      {f32, {0x3F800000, 0x40000000, 0x40000000, 0x3F800000}, {0, 3, 1, 2}},
      // -0 equals +0
      {f32, {0x00000000, 0x80000000, 0x00000000}, {0, 2, 0, 2}},
      // a NaN, whatever its sign and payload, before any number
      {f32, {0x7F800000, 0x7FC00000, 0xFF800000, 0xFFFFFFFF, 0}, {1, 3, 1, 3}},
      // all -inf, all +inf: an ordinary tie
      {f32, {0xFF800000, 0xFF800000}, {0, 1, 0, 1}},
      {f32, {0x7F800000, 0x7F800000}, {0, 1, 0, 1}},
      // denormals differ from zero
      {f32, {0x00000000, 0x00000001, 0x80000001}, {2, 2, 1, 1}},
      {DataType::kFloat16, {0x3C00, 0x7C01, 0xFC00, 0x7C00}, {1, 1, 1, 1}},
      {DataType::kFloat16, {0x3C00, 0x7C00, 0xFC00, 0x8001}, {2, 2, 1, 1}},
      {DataType::kInt8, {0x00, 0x80, 0x7F, 0x80}, {1, 3, 2, 2}},
      {DataType::kUint8, {0xFF, 0x00, 0xFF}, {1, 1, 0, 2}},
      {DataType::kInt64, {0xFFFFFFFFFFFFFFFF, 0, 0x8000000000000000}, {2, 2, 1, 1}},
      {DataType::kUint64, {0xFFFFFFFFFFFFFFFF, 0, 0xFFFFFFFFFFFFFFFF}, {1, 1, 0, 2}},
  };
  for (const Row& row : rows) {
    const std::vector<uint64_t> results = {
        ArgBits(Extreme::kMin, AxisDirection::kIncreasing, row.type, row.input),
        ArgBits(Extreme::kMin, AxisDirection::kDecreasing, row.type, row.input),
        ArgBits(Extreme::kMax, AxisDirection::kIncreasing, row.type, row.input),
        ArgBits(Extreme::kMax, AxisDirection::kDecreasing, row.type, row.input)};
    EXPECT_EQ(results, row.results) << ToString(row.type) << " row " << &row - rows;
  }
}

TEST(ReferenceArgReduce, CountsPositionsInDimensionOrderWhateverTheOrderOfAxes) {
  const TensorDesc input = {DataType::kInt32, {2, 2, 3}, {}};
  // Along {0, 2}, the largest are at (1, _, 0) and (0, _, 2).
  const std::vector<std::byte> bytes = BytesOfNumbers(input, {0, 1, 2,  //
                                                              0, 1, 9,  //
                                                              8, 3, 4,  //
                                                              0, 1, 2});
  for (const std::vector<uint32_t>& axes : {std::vector<uint32_t>{0, 2}, {2, 0}}) {
    const auto outputs = RunReference(
        ArgReduceDesc{Extreme::kMax, input, TensorDesc{DataType::kInt64, {1, 2, 1}, {}}, axes, {}},
        bytes);
    EXPECT_THAT(BitsIn(outputs[0].first, outputs[0].second), ElementsAre(3, 2));
  }
}

TEST(ReferenceTopK, OrdersNansTiesAndSignedZeros) {
  // 1, NaN, -0, +inf, +0, another NaN, -inf
  const Bits input = {0x3F800000, 0x7FC00000, 0x80000000, 0x7F800000,
                      0x00000000, 0xFFC12345, 0xFF800000};
  const auto [values, indices] = TopKBits(AxisDirection::kDecreasing, DataType::kFloat32, input);
  EXPECT_THAT(indices, ElementsAre(1, 5, 3, 0, 2, 4, 6));
  EXPECT_THAT(values, ElementsAre(0x7FC00000, 0xFFC12345, 0x7F800000, 0x3F800000, 0x80000000,
                                  0x00000000, 0xFF800000));
  EXPECT_THAT(TopKBits(AxisDirection::kIncreasing, DataType::kFloat32, input).second,
              ElementsAre(6, 2, 4, 0, 3, 1, 5));
}

TEST(ReferenceTopK, OrdersIntegersByTheirSign) {
  const Bits input = {0x80, 0x7F, 0xFF, 0x00};
  EXPECT_THAT(TopKBits(AxisDirection::kDecreasing, DataType::kInt8, input).second,
              ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(TopKBits(AxisDirection::kDecreasing, DataType::kUint8, input).second,
              ElementsAre(2, 0, 1, 3));
}

TEST(ReferenceHardmax, MarksTheFirstOfEqualMaximaOrTheFirstNan) {
  const TensorDesc input = {DataType::kFloat16, {3, 3}, {}};
  const auto outputs = RunReference(HardmaxDesc{input, std::nullopt, {1}},
                                    BytesOfBits(input, {0x3C00, 0x3C00, 0x0000,     // 1 1 0
                                                        0x7C00, 0xFE00, 0x7E00,     // inf NaN NaN
                                                        0xFC00, 0xFC00, 0xFC00}));  // all -inf
  EXPECT_THAT(BitsIn(outputs[0].first, outputs[0].second),
              ElementsAre(0x3C00, 0, 0, 0, 0x3C00, 0, 0x3C00, 0, 0));
}

TEST(ReferenceStrides, BroadcastTransposeAndPad) {
  // Column-major input, broadcast along the middle axis, into an output with gaps.
  const TensorDesc input = {DataType::kInt32, {2, 2, 3}, {1, 0, 2}};
  const TensorDesc output = {DataType::kInt32, {2, 1, 3}, {8, 1, 2}};
  const std::vector<std::byte> bytes = BytesOfNumbers(input, {1, 2, 3, 1, 2, 3,  //
                                                              4, 5, 6, 4, 5, 6});
  const auto outputs = RunReference(ReduceDesc{ReduceFunction::kSum, input, output, {1}}, bytes);
  EXPECT_THAT(NumbersIn(output, outputs[0].second), ElementsAre(2, 4, 6, 8, 10, 12));
  // Every gap is zero.
  const TensorDesc flat = {DataType::kInt32, {13}, {}};
  EXPECT_THAT(NumbersIn(flat, outputs[0].second),
              ElementsAre(2, 0, 4, 0, 6, 0, 0, 0, 8, 0, 10, 0, 12));
}

TEST(ReferenceRun, RefusesTooFewBytes) {
  const OperatorDesc desc =
      Validate(HardmaxDesc{{DataType::kFloat32, {4}, {}}, std::nullopt, {0}}).value();
  std::vector<std::byte> bytes(16);
  const absl::Span<std::byte> all = absl::MakeSpan(bytes);
  EXPECT_EQ(ReferenceRun(desc, {all.first(12)}, {all}).message(),
            "inputs[0] has 12 bytes; its tensor needs 16.");
  EXPECT_EQ(ReferenceRun(desc, {all}, {all.first(15)}).message(),
            "outputs[0] has 15 bytes; its tensor needs 16.");
  EXPECT_EQ(ReferenceRun(desc, {all}, {}).message(), "hardmax has 1 outputs, but 0 are given.");
}

TEST(ReferenceReduceExact, ReturnsTheTermsOfErrorBounds) {
  const TensorDesc input = {DataType::kFloat32, {2, 3}, {}};
  const std::vector<std::byte> bytes = BytesOfNumbers(input, {1, -2, 4, 0, 3, -3});
  const auto exact = [&](ReduceFunction function) {
    ReduceDesc desc = {function, input, std::nullopt, {1}};
    return ReferenceReduceExact(desc, bytes).value();
  };
  const ExactReduction sum = exact(ReduceFunction::kSum)[0];
  EXPECT_EQ(sum.value, 3);
  EXPECT_EQ(sum.sum, 3);
  EXPECT_EQ(sum.sum_of_magnitudes, 7);
  EXPECT_EQ(sum.largest_term, 4);
  EXPECT_EQ(sum.count, 3u);
  EXPECT_EQ(exact(ReduceFunction::kAverage)[0].value, 1);
  EXPECT_EQ(exact(ReduceFunction::kAverage)[0].sum, 3);
  EXPECT_EQ(exact(ReduceFunction::kL2)[1].sum, 18);
  EXPECT_EQ(exact(ReduceFunction::kL2)[1].value, std::sqrt(18));
  EXPECT_EQ(exact(ReduceFunction::kLogSumExp)[0].maximum, 4);
  EXPECT_EQ(exact(ReduceFunction::kLogSumExp)[0].largest_term, 1);
  EXPECT_EQ(exact(ReduceFunction::kMultiply)[0].value, -8);
}

TEST(ReferenceReduceExact, RefusesFunctionsWithoutASum) {
  const TensorDesc input = {DataType::kInt32, {2}, {}};
  const std::vector<std::byte> bytes(8);
  EXPECT_EQ(ReferenceReduceExact({ReduceFunction::kSum, input, input, {0}}, bytes).status().code(),
            absl::StatusCode::kInvalidArgument);
  const TensorDesc floats = {DataType::kFloat32, {2}, {}};
  EXPECT_EQ(
      ReferenceReduceExact({ReduceFunction::kMax, floats, floats, {0}}, bytes).status().code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace opmill
