// Runs of the cpu device that compute while their input arrives.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/reference/device/reference_device.h"
#include "tests/conformance/values.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

TensorDesc Tensor(DataType type, std::vector<uint32_t> sizes) {
  return {.data_type = type, .sizes = std::move(sizes)};
}
TensorDesc Float32(std::vector<uint32_t> sizes) {
  return Tensor(DataType::kFloat32, std::move(sizes));
}

class IncrementalRunTest : public ::testing::Test {
 protected:
  static uint64_t BytesFor(const OperatorDesc& desc, Device& device) {
    return (*device.Compile(*Validate(desc)))->cost().incremental_bytes;
  }
  uint64_t BytesFor(const OperatorDesc& desc) { return BytesFor(desc, *device_); }

  absl::StatusOr<std::unique_ptr<IncrementalRun>> Begin(const OperatorDesc& desc,
                                                        uint64_t memory_bytes, Bindings& bindings) {
    const OperatorDesc validated = *Validate(desc);
    bindings.inputs = {*device_->Allocate(memory_bytes, Residency::kUpload)};
    for (const TensorDesc& output : OutputsOf(validated)) {
      bindings.outputs.push_back(*device_->Allocate(RequiredBytes(output), Residency::kReadback));
      std::memset(bindings.outputs.back().bytes().data(), 0xA5, RequiredBytes(output));
    }
    return device_->BeginIncremental(*device_->Compile(validated), bindings);
  }

  // The bytes that a run from memory gives, for an input that comes in parts of `part` bytes.
  void ExpectTheSameBytes(const OperatorDesc& desc, size_t part,
                          ValuePattern pattern = ValuePattern::kRandomBits) {
    const OperatorDesc validated = *Validate(desc);
    SCOPED_TRACE(absl::StrCat(ToString(validated), " in parts of ", part));
    const TensorDesc& input = validated.inputs[0];
    const Bytes bytes =
        MakeValues(pattern, input.data_type, RequiredBytes(input), input.sizes.back(), 5);
    const auto expected = RunOperator(*device_, desc, bytes);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const uint64_t memory_bytes = BytesFor(desc);
    ASSERT_GT(memory_bytes, 0u);
    EXPECT_LE(memory_bytes, uint64_t{2} << 20);
    Bindings bindings;
    const auto run = Begin(desc, memory_bytes, bindings);
    ASSERT_TRUE(run.ok()) << run.status();
    for (size_t at = 0; at < bytes.size(); at += part) {
      (*run)->Add(absl::MakeSpan(bytes).subspan(at, part));
    }
    EXPECT_EQ((*run)->Finish().batch_size, 1u);
    for (size_t i = 0; i < expected->size(); ++i) {
      const std::byte* const got = bindings.outputs[i].bytes().data();
      EXPECT_TRUE(std::equal((*expected)[i].begin(), (*expected)[i].end(), got)) << "output " << i;
    }
  }

  const std::unique_ptr<Device> device_ =
      CreateCpuDevice({.threads = 2, .min_incremental_bytes = 1});
};

TEST_F(IncrementalRunTest, FoldsRowsColumnsAndEverything) {
  for (const ReduceFunction function : {ReduceFunction::kSum, ReduceFunction::kL2,
                                        ReduceFunction::kMax, ReduceFunction::kLogSumExp}) {
    const auto reduce = [function](std::vector<uint32_t> sizes, std::vector<uint32_t> axes) {
      return ReduceDesc{
          .function = function, .input = Float32(std::move(sizes)), .axes = std::move(axes)};
    };
    for (const std::vector<uint32_t>& axes :
         {std::vector<uint32_t>{0}, {1}, {2}, {1, 2}, {0, 1, 2}}) {
      ExpectTheSameBytes(reduce({301, 7, 1031}, axes), 10'007);
    }
    // Rows of several pieces, and of several splits.
    ExpectTheSameBytes(reduce({3, 2'000'003}, {1}), 1'000'003);
    // Columns of several tiles and splits.
    ExpectTheSameBytes(reduce({1013, 6007}, {0}), 65'537);
  }
}

TEST_F(IncrementalRunTest, FindsPositionsOfAllTypesInBothDirections) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                              DataType::kInt16, DataType::kUint8}) {
    for (const AxisDirection direction : {AxisDirection::kIncreasing, AxisDirection::kDecreasing}) {
      for (const DataType positions : {DataType::kUint32, DataType::kUint64}) {
        for (const uint32_t axis : {0, 1, 2}) {
          std::vector<uint32_t> sizes = {211, 5, 1026};
          const TensorDesc input = Tensor(type, sizes);
          sizes[axis] = 1;
          ExpectTheSameBytes(ArgReduceDesc{.input = input,
                                           .output = Tensor(positions, sizes),
                                           .axes = {axis},
                                           .axis_direction = direction},
                             4099, ValuePattern::kTies);
        }
      }
    }
  }
}

TEST_F(IncrementalRunTest, WritesTheZerosAndOnesOfHardmax) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const std::vector<uint32_t>& axes :
         {std::vector<uint32_t>{0}, {1}, {2}, {1, 2}, {0, 1, 2}}) {
      ExpectTheSameBytes(HardmaxDesc{.input = Tensor(type, {302, 4, 514}), .axes = axes}, 8191,
                         ValuePattern::kTies);
    }
  }
  ExpectTheSameBytes(HardmaxDesc{.input = Float32({2, 3'000'000}), .axes = {1}}, 1 << 20);
}

TEST_F(IncrementalRunTest, TakesPartsOfAnySize) {
  const ReduceDesc desc = {
      .function = ReduceFunction::kSum, .input = Float32({70, 129}), .axes = {1}};
  for (const size_t part : {1, 3, 4, 515, 516, 517, 32'768, 100'000}) {
    ExpectTheSameBytes(desc, part);
  }
}

// Several of them in a step, and the last step with fewer.
TEST_F(IncrementalRunTest, FoldsShortRowsAndNarrowColumns) {
  for (const ReduceFunction function : {ReduceFunction::kAverage, ReduceFunction::kLogSumExp}) {
    for (const std::vector<uint32_t>& sizes : {std::vector<uint32_t>{3001, 67},
                                               {3001, 8000},
                                               {3001, 3, 19},
                                               {77, 100, 17},
                                               {5, 63, 130}}) {
      ExpectTheSameBytes(ReduceDesc{.function = function, .input = Float32(sizes), .axes = {1}},
                         65'536);
    }
  }
  ExpectTheSameBytes(HardmaxDesc{.input = Float32({3001, 3, 19}), .axes = {1}}, 5000);
}

TEST_F(IncrementalRunTest, ClearsWhatFollowsAnOddNumberOfSmallResults) {
  for (const std::vector<uint32_t>& axes : {std::vector<uint32_t>{0}, {1}, {0, 1}}) {
    const TensorDesc input = Tensor(DataType::kFloat16, {101, 1031});
    ExpectTheSameBytes(ReduceDesc{.function = ReduceFunction::kSum, .input = input, .axes = axes},
                       10'000);
    ExpectTheSameBytes(HardmaxDesc{.input = input, .axes = axes}, 10'000);
  }
}

TEST_F(IncrementalRunTest, IgnoresBytesPastTheEndOfTheInput) {
  const ReduceDesc desc = {
      .function = ReduceFunction::kSum, .input = Float32({1, 100}), .axes = {1}};
  Bindings bindings;
  const auto run = Begin(desc, BytesFor(desc), bindings);
  ASSERT_TRUE(run.ok()) << run.status();
  const std::vector<float> ones(200, 1.0f);
  (*run)->Add(absl::MakeSpan(reinterpret_cast<const std::byte*>(ones.data()), 800));
  (*run)->Add(absl::MakeSpan(reinterpret_cast<const std::byte*>(ones.data()), 8));
  float sum = 0;
  std::memcpy(&sum, bindings.outputs[0].bytes().data(), sizeof(sum));
  EXPECT_EQ(sum, 100.0f);
}

TEST_F(IncrementalRunTest, NeedsTheWholeInputOfOthers) {
  const TensorDesc packed = Float32({64, 1024});
  TensorDesc strided = packed;
  strided.strides = {2048, 1};
  TensorDesc transposed = packed;
  transposed.strides = {1, 64};
  const auto sum = [](const TensorDesc& input, std::vector<uint32_t> axes) {
    return ReduceDesc{.function = ReduceFunction::kSum, .input = input, .axes = std::move(axes)};
  };
  EXPECT_GT(BytesFor(sum(packed, {1})), 0u);
  EXPECT_EQ(BytesFor(sum(strided, {1})), 0u);
  // The order in memory is that of the columns.
  EXPECT_GT(BytesFor(sum(transposed, {1})), 0u);
  // Its outer and its inner dimension.
  EXPECT_EQ(BytesFor(sum(Float32({64, 64, 1024}), {0, 2})), 0u);
  // So short that rows are gathered.
  EXPECT_EQ(BytesFor(sum(Float32({1024, 3}), {1})), 0u);
  // Eight rows, or the states of all columns, are much compared with the input.
  EXPECT_EQ(BytesFor(sum(Float32({64, 65'537}), {0})), 0u);
  EXPECT_EQ(BytesFor(sum(Float32({8, 16'384}), {0})), 0u);
  EXPECT_EQ(BytesFor(ArgReduceDesc{.input = Tensor(DataType::kInt8, {2, 1 << 20}), .axes = {0}}),
            0u);
  EXPECT_EQ(BytesFor(TopKDesc{.input = packed, .axis = 1, .k = 1}), 0u);
  EXPECT_EQ(BytesFor(sum(Float32({32, 1023}), {1}), *CreateCpuDevice()), 0u) << "so small";
}

TEST_F(IncrementalRunTest, RefusesMemoryThatIsTooSmall) {
  const ReduceDesc desc = {
      .function = ReduceFunction::kSum, .input = Float32({64, 1024}), .axes = {1}};
  Bindings bindings;
  EXPECT_THAT(std::string(Begin(desc, 100, bindings).status().message()),
              HasSubstr(absl::StrCat("inputs[0] has 100 bytes, and needs ", BytesFor(desc))));
}

TEST_F(IncrementalRunTest, RefusesAnOperatorThatNeedsItsWholeInput) {
  Bindings bindings;
  EXPECT_EQ(
      Begin(TopKDesc{.input = Float32({64, 1024}), .axis = 1, .k = 10}, 100, bindings).status(),
      absl::FailedPreconditionError("The program needs its whole input."));
}

TEST_F(IncrementalRunTest, OtherDevicesHaveNone) {
  const auto reference = CreateReferenceDevice();
  const OperatorDesc desc = *Validate(
      ReduceDesc{.function = ReduceFunction::kSum, .input = Float32({64, 1024}), .axes = {1}});
  EXPECT_EQ(BytesFor(desc, *reference), 0u);
  EXPECT_EQ(reference->BeginIncremental(*reference->Compile(desc), {}).status(),
            absl::UnimplementedError("The device has no incremental runs."));
}

}  // namespace
}  // namespace opmill
