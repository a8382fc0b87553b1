// The operators that move elements: the examples of DirectML's pages, and refusals.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/operator_reference.h"
#include "shaders/move_constants.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using Attributes = std::map<std::string, std::string>;
struct Tensor {
  TensorDesc desc;
  std::vector<double> numbers;
};

Tensor Floats(std::vector<uint32_t> sizes, std::vector<double> numbers) {
  return {{DataType::kFloat32, std::move(sizes), {}}, std::move(numbers)};
}
Tensor Indices(std::vector<uint32_t> sizes, std::vector<double> numbers,
               DataType type = DataType::kUint32) {
  return {{type, std::move(sizes), {}}, std::move(numbers)};
}
// 1, 2, 3, ...
Tensor Counted(std::vector<uint32_t> sizes) {
  Tensor tensor = Floats(std::move(sizes), {});
  for (uint64_t i = 1; i <= ElementCount(tensor.desc); ++i) {
    tensor.numbers.push_back(static_cast<double>(i));
  }
  return tensor;
}

OperatorDesc DescOf(const std::string& name, const std::vector<Tensor>& inputs,
                    const Attributes& attributes) {
  const absl::Span<const OperatorSchema* const> operators = Operators();
  OperatorDesc desc = {.schema = *absl::c_find_if(
                           operators, [&](const auto* schema) { return schema->name == name; })};
  for (const Tensor& input : inputs) desc.inputs.push_back(input.desc);
  desc.outputs.resize(1);
  for (const AttributeSchema& attribute : desc.schema->attributes) {
    const auto given = attributes.find(std::string(attribute.name));
    const absl::StatusOr<AttributeValue> value =
        given == attributes.end() ? DefaultOf(attribute) : ParseAttribute(attribute, given->second);
    EXPECT_EQ(value.status(), absl::OkStatus()) << attribute.name;
    desc.attributes.push_back(value.value_or(AttributeValue()));
  }
  return desc;
}

struct Moved {
  std::vector<uint32_t> sizes;
  std::vector<double> numbers;
};

Moved Moves(const std::string& name, const std::vector<Tensor>& inputs,
            const Attributes& attributes) {
  const absl::StatusOr<OperatorDesc> validated = Validate(DescOf(name, inputs, attributes));
  EXPECT_EQ(validated.status(), absl::OkStatus());
  if (!validated.ok()) return {};
  std::vector<std::vector<std::byte>> bytes;
  std::vector<absl::Span<const std::byte>> spans;
  for (const Tensor& input : inputs) bytes.push_back(BytesOfNumbers(input.desc, input.numbers));
  for (const std::vector<std::byte>& each : bytes) spans.push_back(each);
  const TensorDesc& output = *validated->outputs[0];
  std::vector<std::byte> result(RequiredBytes(output));
  EXPECT_EQ(ReferenceRun(*validated, spans, {absl::MakeSpan(result)}), absl::OkStatus());
  return {output.sizes, NumbersIn(output, result)};
}

// "field: sentence"
std::string Refusal(const std::string& name, const std::vector<Tensor>& inputs,
                    const Attributes& attributes) {
  const absl::Status status = Validate(DescOf(name, inputs, attributes)).status();
  return FieldOf(status).value_or("") + ": " + std::string(status.message());
}

// The examples of DirectML's page.
TEST(DiagonalMatrix, FillsDiagonals) {
  const auto filled = [](const Tensor& input, const char* value, const char* begin,
                         const char* end) {
    return Moves("diagonal_matrix1", {input},
                 {{"value", value}, {"diagonal_fill_begin", begin}, {"diagonal_fill_end", end}})
        .numbers;
  };
  const Tensor zeros = Floats({4, 5}, std::vector<double>(20, 0));
  EXPECT_THAT(filled(zeros, "1", "0", "1"),
              ElementsAre(1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0));
  EXPECT_THAT(filled(zeros, "7", "0", "3"),
              ElementsAre(7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7));
  EXPECT_THAT(filled(Counted({2, 3}), "0", "-2147483648", "1"), ElementsAre(0, 2, 3, 0, 0, 6));
  // In reverse: all but what is between the diagonals.
  EXPECT_THAT(filled(Counted({2, 3}), "0", "1", "0"), ElementsAre(1, 0, 0, 0, 5, 0));
  EXPECT_THAT(filled(Counted({2, 2}), "9", "1", "1"), ElementsAre(1, 2, 3, 4));
}

TEST(DiagonalMatrix, RefusesVectors) {
  EXPECT_EQ(Refusal("diagonal_matrix1", {Counted({4})}, {}),
            "input.sizes: diagonal_matrix1 takes 2 to 4 dimensions, but input.sizes has 1.");
}

TEST(Join, PutsInputsOneAfterTheOther) {
  const Moved moved =
      Moves("join", {Counted({1, 1, 2, 3}), Counted({1, 1, 2, 4})}, {{"axis", "3"}});
  EXPECT_THAT(moved.sizes, ElementsAre(1, 1, 2, 7));
  EXPECT_THAT(moved.numbers, ElementsAre(1, 2, 3, 1, 2, 3, 4, 4, 5, 6, 5, 6, 7, 8));
  EXPECT_THAT(Moves("join", {Counted({2})}, {{"axis", "0"}}).numbers, ElementsAre(1, 2));
}

TEST(Join, RefusesInputsThatDoNotFit) {
  EXPECT_EQ(Refusal("join", {Counted({2, 3}), Counted({3, 3})}, {{"axis", "1"}}),
            "input1.sizes[0]: input1.sizes[0] is 3, but input.sizes[0] is 2.");
  EXPECT_EQ(Refusal("join", {Counted({2}), Indices({2}, {0, 0})}, {{"axis", "0"}}),
            "input1.data_type: input1.data_type (UINT32) differs from input.data_type (FLOAT32).");
}

// The examples of DirectML's page.
TEST(Slice, StepsThroughAWindow) {
  const Tensor input = Counted({1, 1, 4, 4});
  Attributes window = {{"input_window_offsets", "0,0,0,1"},
                       {"input_window_sizes", "1,1,4,3"},
                       {"input_window_strides", "1,1,2,2"}};
  EXPECT_THAT(Moves("slice1", {input}, window).numbers, ElementsAre(2, 4, 10, 12));
  window["input_window_strides"] = "1,1,-2,2";
  EXPECT_THAT(Moves("slice1", {input}, window).numbers, ElementsAre(14, 16, 6, 8));
}

TEST(Slice, MayLeaveOutTheEndOfTheWindow) {
  OperatorDesc desc = DescOf(
      "slice1", {Counted({9})},
      {{"input_window_offsets", "1"}, {"input_window_sizes", "8"}, {"input_window_strides", "3"}});
  for (const uint32_t size : {1u, 2u, 3u}) {
    desc.outputs[0] = TensorDesc{DataType::kFloat32, {size}, {}};
    EXPECT_TRUE(Validate(desc).ok()) << size;
  }
  desc.outputs[0]->sizes = {4};
  EXPECT_EQ(Validate(desc).status().message(),
            "output.sizes[0] is 4, but 3 is what the operator writes there.");
}

TEST(Slice, RefusesWindowsBeyondTheInput) {
  const Attributes window = {
      {"input_window_offsets", "1"}, {"input_window_sizes", "3"}, {"input_window_strides", "1"}};
  EXPECT_EQ(Refusal("slice1", {Counted({3})}, window),
            "input_window_sizes[0]: input_window_offsets[0] (1) + input_window_sizes[0] (3) is "
            "above input.sizes[0] (3).");
  EXPECT_EQ(Refusal("slice1", {Counted({3, 3})}, window),
            "input_window_offsets: input_window_offsets has 1 entry, but input.sizes has 2.");
  Attributes other = window;
  other["input_window_strides"] = "0";
  EXPECT_EQ(Refusal("slice1", {Counted({4})}, other),
            "input_window_strides[0]: input_window_strides[0] is 0.");
}

// The examples of DirectML's page.
TEST(Padding, HasTheModesOfThePage) {
  const Tensor input = Floats({1, 1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8});
  const auto row = [&](const std::string& mode, size_t number) {
    const Moved moved = Moves("padding1", {input},
                              {{"padding_mode", mode},
                               {"padding_value", "9"},
                               {"start_padding", "0,0,1,2"},
                               {"end_padding", "0,0,3,4"}});
    EXPECT_THAT(moved.sizes, ElementsAre(1, 1, 8, 10));
    const auto begin = moved.numbers.begin() + static_cast<ptrdiff_t>(number * 10);
    return std::vector<double>(begin, begin + 10);
  };
  EXPECT_THAT(row("CONSTANT", 0), ElementsAre(9, 9, 9, 9, 9, 9, 9, 9, 9, 9));
  EXPECT_THAT(row("CONSTANT", 4), ElementsAre(9, 9, 5, 6, 7, 8, 9, 9, 9, 9));
  EXPECT_THAT(row("EDGE", 0), ElementsAre(1, 1, 1, 2, 3, 4, 4, 4, 4, 4));
  EXPECT_THAT(row("EDGE", 7), ElementsAre(5, 5, 5, 6, 7, 8, 8, 8, 8, 8));
  EXPECT_THAT(row("REFLECTION", 0), ElementsAre(7, 6, 5, 6, 7, 8, 7, 6, 5, 6));
  EXPECT_THAT(row("REFLECTION", 7), ElementsAre(3, 2, 1, 2, 3, 4, 3, 2, 1, 2));
  EXPECT_THAT(row("SYMMETRIC", 0), ElementsAre(2, 1, 1, 2, 3, 4, 4, 3, 2, 1));
  EXPECT_THAT(row("SYMMETRIC", 7), ElementsAre(6, 5, 5, 6, 7, 8, 8, 7, 6, 5));
  EXPECT_THAT(row("WRAP", 0), ElementsAre(7, 8, 5, 6, 7, 8, 5, 6, 7, 8));
}

TEST(Padding, FoldsPeriodically) {
  const auto padded = [](const std::string& mode, std::vector<uint32_t> sizes) {
    return Moves("padding1", {Counted(std::move(sizes))},
                 {{"padding_mode", mode}, {"start_padding", "4"}, {"end_padding", "4"}})
        .numbers;
  };
  EXPECT_THAT(padded("REFLECTION", {2}), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(padded("SYMMETRIC", {2}), ElementsAre(1, 2, 2, 1, 1, 2, 2, 1, 1, 2));
  EXPECT_THAT(padded("WRAP", {3}), ElementsAre(3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1));
  EXPECT_THAT(padded("REFLECTION", {1}), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(Padding, WrapsFromLevel64On) {
  const OperatorDesc desc =
      DescOf("padding1", {Counted({2})},
             {{"padding_mode", "WRAP"}, {"start_padding", "1"}, {"end_padding", "0"}});
  EXPECT_EQ(Validate(desc, FeatureLevel::k6_3).status().message(),
            "At feature level 6.3 padding1 takes CONSTANT, EDGE, REFLECTION, SYMMETRIC, but "
            "padding_mode is WRAP; feature level 6.4 allows this request.");
}

TEST(Padding, RefusesSizesPastTheLimit) {
  EXPECT_EQ(
      Refusal("padding1", {Counted({2})}, {{"start_padding", "4294967295"}, {"end_padding", "0"}}),
      "output.sizes[0]: output.sizes[0] (4294967297) is above the limit (2147483647) of "
      "operators that move elements.");
}

TEST(Tile, RepeatsTheInput) {
  const Moved moved = Moves("tile", {Counted({1, 1, 2, 3})}, {{"repeats", "1,1,2,2"}});
  EXPECT_THAT(moved.sizes, ElementsAre(1, 1, 4, 6));
  const double row[] = {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6};
  EXPECT_THAT(std::vector<double>(moved.numbers.begin(), moved.numbers.begin() + 12),
              ElementsAreArray(row));
  EXPECT_EQ(Refusal("tile", {Counted({2})}, {{"repeats", "0"}}),
            "repeats[0]: repeats[0] (0) is below 1.");
}

// The examples of DirectML's page.
TEST(Gather, HasTheShapesOfThePage) {
  const auto gathered = [](const Tensor& input, const Tensor& indices, const char* axis,
                           const char* dimensions) {
    return Moves("gather", {input, indices}, {{"axis", axis}, {"index_dimensions", dimensions}});
  };
  EXPECT_THAT(gathered(Counted({4}), Indices({5}, {3, 1, 3, 0, 2}), "0", "1").numbers,
              ElementsAre(4, 2, 4, 1, 3));
  const Moved rows = gathered(Counted({3, 2}), Indices({1, 4}, {0, 1, 1, 2}), "0", "1");
  EXPECT_THAT(rows.sizes, ElementsAre(4, 2));
  EXPECT_THAT(rows.numbers, ElementsAre(1, 2, 3, 4, 3, 4, 5, 6));
  const Moved nested = gathered(Counted({1, 3, 3}), Indices({1, 1, 2}, {0, 2}), "2", "2");
  EXPECT_THAT(nested.sizes, ElementsAre(3, 1, 2));
  EXPECT_THAT(nested.numbers, ElementsAre(1, 3, 4, 6, 7, 9));
  const Moved outer = gathered(Counted({1, 3, 2}), Indices({1, 2, 2}, {0, 1, 1, 2}), "1", "2");
  EXPECT_THAT(outer.sizes, ElementsAre(2, 2, 2));
  EXPECT_THAT(outer.numbers, ElementsAre(1, 2, 3, 4, 3, 4, 5, 6));
  EXPECT_THAT(gathered(Counted({2, 3}), Indices({1, 1}, {1}), "0", "0").sizes, ElementsAre(1, 3));
}

TEST(Gather, TakesIndicesFromTheEndAndGivesZeroOutOfRange) {
  for (const DataType type : {DataType::kInt32, DataType::kInt64}) {
    EXPECT_THAT(Moves("gather", {Counted({3}), Indices({5}, {-1, -3, -4, 3, 2}, type)},
                      {{"axis", "0"}, {"index_dimensions", "1"}})
                    .numbers,
                ElementsAre(3, 1, 0, 0, 3));
  }
  // 2^32 + 1 is no index, although its low word is one.
  EXPECT_THAT(Moves("gather", {Counted({3}), Indices({1}, {4294967297.0}, DataType::kUint64)},
                    {{"axis", "0"}, {"index_dimensions", "1"}})
                  .numbers,
              ElementsAre(0));
}

TEST(Gather, RefusesWhatDoesNotFit) {
  EXPECT_EQ(Refusal("gather", {Counted({2, 3}), Indices({2, 2}, {0, 0, 0, 0})},
                    {{"axis", "0"}, {"index_dimensions", "1"}}),
            "indices.sizes[0]: indices.sizes[0] is 2, but must be 1: index_dimensions is 1.");
  EXPECT_EQ(Refusal("gather", {Counted({2, 3}), Indices({2, 2}, {0, 0, 0, 0})},
                    {{"axis", "0"}, {"index_dimensions", "2"}}),
            "output.sizes: output.sizes would have 3 dimensions, more than input.sizes (2); give "
            "the input leading dimensions of size 1.");
  EXPECT_EQ(Refusal("gather", {Counted({2}), Floats({1}, {0})},
                    {{"axis", "0"}, {"index_dimensions", "1"}}),
            "indices.data_type: gather takes INT64, INT32, UINT64, UINT32, but indices.data_type "
            "is FLOAT32.");
}

// The example of DirectML's page.
TEST(GatherElements, TakesAnIndexForEachElement) {
  EXPECT_THAT(Moves("gather_elements", {Counted({3, 3}), Indices({2, 3}, {1, 2, 0, 2, 0, 0})},
                    {{"axis", "0"}})
                  .numbers,
              ElementsAre(4, 8, 3, 7, 2, 3));
  EXPECT_EQ(
      Refusal("gather_elements", {Counted({3, 3}), Indices({2, 2}, {1, 2, 0, 2})}, {{"axis", "0"}}),
      "indices.sizes[1]: indices.sizes[1] is 2, but input.sizes[1] is 3.");
}

// The examples of DirectML's page.
TEST(GatherNd, TakesTuplesOfCoordinates) {
  EXPECT_THAT(Moves("gather_nd1", {Counted({2, 2}), Indices({2, 1}, {1, 0})},
                    {{"input_dimension_count", "2"}, {"indices_dimension_count", "2"}})
                  .numbers,
              ElementsAre(3, 4, 1, 2));
  const Moved moved =
      Moves("gather_nd1",
            {Counted({1, 3, 2, 2}), Indices({1, 3, 2, 2}, {0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0})},
            {{"input_dimension_count", "3"},
             {"indices_dimension_count", "3"},
             {"batch_dimension_count", "1"}});
  EXPECT_THAT(moved.sizes, ElementsAre(1, 1, 3, 2));
  EXPECT_THAT(moved.numbers, ElementsAre(1, 4, 8, 5, 10, 11));
}

TEST(GatherNd, RefusesCountsThatDoNotFit) {
  const std::vector<Tensor> tensors = {Counted({2, 2}), Indices({1, 3}, {0, 0, 0})};
  const auto refusal = [&](const char* inputs, const char* indices, const char* batches) {
    return Refusal("gather_nd1", tensors,
                   {{"input_dimension_count", inputs},
                    {"indices_dimension_count", indices},
                    {"batch_dimension_count", batches}});
  };
  EXPECT_EQ(refusal("3", "2", "0"),
            "input_dimension_count: input_dimension_count (3) is not between 1 and 2, the "
            "dimension count of input.");
  EXPECT_EQ(refusal("2", "1", "0"),
            "indices.sizes[1]: indices.sizes[1] (3) is above the number of dimensions that can be "
            "indexed (2).");
  EXPECT_EQ(refusal("2", "2", "2"),
            "batch_dimension_count: batch_dimension_count (2) is not below the number of "
            "dimensions (2).");
}

// The examples of DirectML's page.
TEST(Scatter, OverwritesElements) {
  EXPECT_THAT(
      Moves("scatter", {Counted({5}), Indices({4}, {3, 1, 2, 0}), Floats({4}, {50, 60, 70, 80})},
            {{"axis", "0"}})
          .numbers,
      ElementsAre(80, 60, 70, 50, 5));
  EXPECT_THAT(Moves("scatter",
                    {Floats({3, 3}, std::vector<double>(9, 0)), Indices({2, 3}, {1, 0, 2, 0, 2, 1}),
                     Floats({2, 3}, {10, 11, 12, 20, 21, 22})},
                    {{"axis", "0"}})
                  .numbers,
              ElementsAre(20, 11, 0, 10, 0, 22, 0, 21, 12));
}

TEST(Scatter, KeepsTheLastOfSeveralUpdatesAndSkipsIndicesOutOfRange) {
  EXPECT_THAT(Moves("scatter",
                    {Counted({3}), Indices({5}, {1, -1, 1, 3, -4}, DataType::kInt64),
                     Floats({5}, {10, 20, 30, 40, 50})},
                    {{"axis", "0"}})
                  .numbers,
              ElementsAre(1, 30, 20));
}

TEST(Scatter, RefusesUpdatesOfOtherSizesOrTypes) {
  EXPECT_EQ(
      Refusal("scatter", {Counted({3}), Indices({2}, {0, 1}), Floats({1}, {5})}, {{"axis", "0"}}),
      "updates.sizes[0]: updates.sizes[0] is 1, but indices.sizes[0] is 2.");
  EXPECT_EQ(
      Refusal("scatter", {Counted({3}), Indices({1}, {0}), Indices({1}, {5})}, {{"axis", "0"}}),
      "updates.data_type: updates.data_type (UINT32) differs from input.data_type "
      "(FLOAT32).");
}

TEST(ScatterPlan, NotesTheLastUpdateBeforeItWrites) {
  const OperatorDesc desc =
      Validate(DescOf("scatter", {Counted({64}), Indices({8}, {}), Counted({8})}, {{"axis", "0"}}))
          .value();
  const OperatorPlan plan = MakePlan(desc, {}).value();
  ASSERT_EQ(plan.passes.size(), 2u);
  EXPECT_EQ(plan.scratch_bytes, 256u);
  EXPECT_EQ(plan.kernels[plan.passes[0].dispatches[1].kernel].entry, "Mark");
  EXPECT_EQ(plan.kernels[plan.passes[1].dispatches[0].kernel].entry, "Scatter");
}

// The examples of DirectML's page.
TEST(ReverseSubsequences, ReversesTheFirstElements) {
  const Tensor input = Counted({1, 1, 3, 4});
  EXPECT_THAT(
      Moves("reverse_subsequences", {input, Indices({1, 1, 3, 1}, {2, 4, 3})}, {{"axis", "3"}})
          .numbers,
      ElementsAre(2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12));
  EXPECT_THAT(
      Moves("reverse_subsequences", {input, Indices({1, 1, 1, 4}, {2, 3, 1, 0})}, {{"axis", "2"}})
          .numbers,
      ElementsAre(5, 10, 3, 4, 1, 6, 7, 8, 9, 2, 11, 12));
  // Lengths are limited to the sequence.
  EXPECT_THAT(Moves("reverse_subsequences", {Counted({3}), Indices({1}, {1e15}, DataType::kUint64)},
                    {{"axis", "0"}})
                  .numbers,
              ElementsAre(3, 2, 1));
  EXPECT_EQ(Refusal("reverse_subsequences", {Counted({3}), Indices({2}, {1, 1})}, {{"axis", "0"}}),
            "sequence_lengths.sizes[0]: sequence_lengths.sizes[0] is 2, but must be 1 along the "
            "axis.");
}

// The examples of DirectML's pages: channels are the numbers from 0, 9, 18, ... on.
TEST(DepthAndSpace, MoveBlocks) {
  Tensor depth = Indices({1, 8, 2, 3}, {});
  for (int channel = 0; channel < 8; ++channel) {
    for (int i = 0; i < 6; ++i) depth.numbers.push_back(channel * 9 + i);
  }
  const std::vector<double> rows_of_depth = {0, 18, 1, 19, 2, 20, 36, 54, 37, 55, 38, 56};
  const std::vector<double> rows_of_columns = {0, 9, 1, 10, 2, 11, 18, 27, 19, 28, 20, 29};
  for (const char* const order : {"DEPTH_COLUMN_ROW", "COLUMN_ROW_DEPTH"}) {
    const Attributes attributes = {{"block_size", "2"}, {"order", order}};
    const Moved space = Moves("depth_to_space1", {depth}, attributes);
    EXPECT_THAT(space.sizes, ElementsAre(1, 2, 4, 6));
    EXPECT_THAT(std::vector<double>(space.numbers.begin(), space.numbers.begin() + 12),
                ElementsAreArray(order[0] == 'D' ? rows_of_depth : rows_of_columns));
    EXPECT_EQ(Moves("space_to_depth1", {Indices(space.sizes, space.numbers)}, attributes).numbers,
              depth.numbers);
  }
  EXPECT_EQ(Refusal("space_to_depth1", {Counted({1, 1, 2, 3})}, {{"block_size", "2"}}),
            "input.sizes[3]: input.sizes[3] (3) is not a multiple of block_size (2).");
}

TEST(Resample, TakesTheNearestElement) {
  const auto resampled = [](const char* scale, const char* input_offset, const char* output_offset,
                            const char* direction) {
    return Moves("resample2", {Counted({4})},
                 {{"scales", scale},
                  {"input_pixel_offsets", input_offset},
                  {"output_pixel_offsets", output_offset},
                  {"rounding_direction", direction}})
        .numbers;
  };
  EXPECT_THAT(resampled("2", "0", "0", "DECREASING"), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(resampled("2", "0", "0", "INCREASING"), ElementsAre(1, 2, 2, 3, 3, 4, 4, 4));
  EXPECT_THAT(resampled("0.5", "0", "0", "DECREASING"), ElementsAre(1, 3));
  // Centers of pixels: at -0.25, 0.25, 0.75, ...
  EXPECT_THAT(resampled("2", "0.5", "-0.5", "DECREASING"), ElementsAre(1, 1, 1, 2, 2, 3, 3, 4));
  EXPECT_THAT(resampled("0.75", "0", "0", "DECREASING"), ElementsAre(1, 2, 3));
}

TEST(Resample, RefusesScalesThatAreNone) {
  const auto refusal = [](const char* scale) {
    return Refusal(
        "resample2", {Counted({4})},
        {{"scales", scale}, {"input_pixel_offsets", "0"}, {"output_pixel_offsets", "0"}});
  };
  EXPECT_EQ(refusal("-1"), "scales[0]: scales[0] (-1) is not a number above 0.");
  EXPECT_EQ(refusal("1e-12"),
            "scales[0]: scales[0] (1e-12) and the offsets lead to position 1e+12 of the input; "
            "the limit is 2147483647.");
}

// Adjacent elements move as one.
TEST(MovePlan, MovesVectorsWhereRowsAllow) {
  const auto width = [](std::vector<uint32_t> sizes, std::vector<uint32_t> others) {
    const OperatorDesc desc =
        Validate(DescOf("join", {Counted(std::move(sizes)), Counted(std::move(others))},
                        {{"axis", "1"}}))
            .value();
    const OperatorPlan plan = MakePlan(desc, {}).value();
    EXPECT_EQ(plan.passes.size(), 1u);
    return plan.kernels[0].macros.back().value;
  };
  EXPECT_EQ(width({3, 8}, {3, 4}), 16u);
  EXPECT_EQ(width({3, 8}, {3, 2}), 8u);
  EXPECT_EQ(width({3, 8}, {3, 1}), 4u);
}

TEST(MovePlan, CutsInputsBeyondAView) {
  const OperatorDesc desc =
      Validate(DescOf("gather", {Counted({1000, 16}), Indices({1, 3}, {0, 999, 5})},
                      {{"axis", "0"}, {"index_dimensions", "1"}}))
          .value();
  const OperatorPlan plan = MakePlan(desc, {.max_view_elements = 1024}).value();
  uint32_t next = 0;
  uint32_t writers = 0;
  for (const Dispatch& dispatch : plan.passes[0].dispatches) {
    const auto constants = dispatch.constants.As<MoveConstants>();
    EXPECT_EQ(constants.indexed[0].first, next);
    next += constants.indexed[0].count;
    writers += constants.writes_invalid;
  }
  EXPECT_GT(plan.passes[0].dispatches.size(), 1u);
  EXPECT_EQ(next, 1000u);
  EXPECT_EQ(writers, 1u);
}

}  // namespace
}  // namespace opmill
