// element_wise_add: its results by hand, what it refuses, and its plans.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/dims/elementwise_space.h"
#include "kernels/dims/iteration_space.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/plan/plan_builder.h"
#include "shaders/elementwise_constants.h"
#include "tests/kernels/plans.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Bits = std::vector<uint64_t>;

std::vector<std::byte> ReferenceBytes(const ElementWiseAddDesc& desc, const Bits& a,
                                      const Bits& b) {
  const absl::StatusOr<OperatorDesc> validated = Validate(desc);
  EXPECT_TRUE(validated.ok()) << validated.status();
  if (!validated.ok()) return {};
  const std::vector<std::byte> inputs[] = {BytesOfBits(desc.a, a), BytesOfBits(desc.b, b)};
  std::vector<std::byte> output(RequiredBytes(*validated->outputs[0]), std::byte{0xEE});
  EXPECT_EQ(
      ReferenceRun(*validated, {absl::MakeConstSpan(inputs[0]), absl::MakeConstSpan(inputs[1])},
                   {absl::MakeSpan(output)}),
      absl::OkStatus());
  return output;
}

Bits AddBits(DataType type, const Bits& a, const Bits& b) {
  const TensorDesc tensor = Tensor({static_cast<uint32_t>(a.size())}, type);
  return BitsIn(tensor, ReferenceBytes({.a = tensor, .b = tensor}, a, b));
}

TEST(ReferenceElementWiseAdd, WrapsIntegers) {
  EXPECT_THAT(AddBits(DataType::kUint8, {200, 255, 1}, {100, 1, 2}), ElementsAre(44, 0, 3));
  EXPECT_THAT(AddBits(DataType::kInt8, {0x7F, 0x80, 0xFF}, {1, 0x80, 1}), ElementsAre(0x80, 0, 0));
  EXPECT_THAT(AddBits(DataType::kUint16, {0xFFFF, 40000}, {2, 30000}), ElementsAre(1, 4464));
  EXPECT_THAT(AddBits(DataType::kInt16, {0x7FFF}, {1}), ElementsAre(0x8000));
  EXPECT_THAT(AddBits(DataType::kInt32, {0x7FFF'FFFF}, {1}), ElementsAre(0x8000'0000));
  EXPECT_THAT(AddBits(DataType::kUint32, {0xFFFF'FFFF}, {2}), ElementsAre(1));
  EXPECT_THAT(AddBits(DataType::kInt64, {0x7FFF'FFFF'FFFF'FFFF, 0xFFFF'FFFF}, {1, 1}),
              ElementsAre(0x8000'0000'0000'0000, 0x1'0000'0000));
  EXPECT_THAT(AddBits(DataType::kUint64, {~uint64_t{0}}, {3}), ElementsAre(2));
}

TEST(ReferenceElementWiseAdd, RoundsFloatsOnceToNearestEven) {
  // 2^24 + 1 is a tie that goes to 2^24, 2^24 + 3 one that goes to 2^24 + 4.
  EXPECT_THAT(AddBits(DataType::kFloat32, {0x4B80'0000, 0x4B80'0001}, {0x3F80'0000, 0x3F80'0000}),
              ElementsAre(0x4B80'0000, 0x4B80'0002));
  // The largest and half of its last step: infinity; a little less: the largest.
  EXPECT_THAT(AddBits(DataType::kFloat32, {0x7F7F'FFFF, 0x7F7F'FFFF}, {0x7300'0000, 0x72FF'FFFF}),
              ElementsAre(0x7F80'0000, 0x7F7F'FFFF));
  // 2048 + 1 and 2050 + 1 of halves; 65504 + 16 and 65504 + 15.
  EXPECT_THAT(AddBits(DataType::kFloat16, {0x6800, 0x6801, 0x7BFF, 0x7BFF},
                      {0x3C00, 0x3C00, 0x4C00, 0x4B80}),
              ElementsAre(0x6800, 0x6802, 0x7C00, 0x7BFF));
  // 2048 + 1 + 2^-24 is no tie.
  EXPECT_THAT(AddBits(DataType::kFloat16, {0x6801}, {0x3C01}), ElementsAre(0x6802));
}

TEST(ReferenceElementWiseAdd, GivesZerosTheirSign) {
  const Bits a = {0x8000'0000, 0x8000'0000, 0, 0x3F80'0000, 0xBF80'0000};
  const Bits b = {0x8000'0000, 0, 0x8000'0000, 0xBF80'0000, 0x3F80'0000};
  EXPECT_THAT(AddBits(DataType::kFloat32, a, b), ElementsAre(0x8000'0000, 0, 0, 0, 0));
  EXPECT_THAT(AddBits(DataType::kFloat16, {0x8000, 0x8000, 0x3C00}, {0x8000, 0, 0xBC00}),
              ElementsAre(0x8000, 0, 0));
}

TEST(ReferenceElementWiseAdd, GivesOneQuietNan) {
  const Bits a = {0xFFC0'1234, 0x3F80'0000, 0x7F80'0000, 0x7F80'0000, 0xFF80'0000};
  const Bits b = {0x3F80'0000, 0x7F80'0001, 0xFF80'0000, 0x7F80'0000, 0x3F80'0000};
  EXPECT_THAT(AddBits(DataType::kFloat32, a, b),
              ElementsAre(0x7FC0'0000, 0x7FC0'0000, 0x7FC0'0000, 0x7F80'0000, 0xFF80'0000));
  EXPECT_THAT(AddBits(DataType::kFloat16, {0xFC01, 0x7C00, 0xFC00}, {0x3C00, 0xFC00, 0xFC00}),
              ElementsAre(0x7E00, 0x7E00, 0xFC00));
}

TEST(ReferenceElementWiseAdd, BroadcastsAndLeavesGapsZero) {
  const TensorDesc column = Tensor({2, 3}, DataType::kInt32, {1, 0});
  const TensorDesc row = Tensor({2, 3}, DataType::kInt32, {0, 1});
  const TensorDesc padded = Tensor({2, 3}, DataType::kInt32, {4, 1});
  const std::vector<std::byte> bytes = ReferenceBytes({.a = column, .b = row, .output = padded},
                                                      {10, 10, 10, 20, 20, 20}, {1, 2, 3, 1, 2, 3});
  EXPECT_THAT(BitsIn(Tensor({7}, DataType::kInt32), bytes), ElementsAre(11, 12, 13, 0, 21, 22, 23));
}

TEST(ValidateElementWiseAdd, InfersThePackedOutput) {
  const absl::StatusOr<OperatorDesc> desc = Validate(ElementWiseAddDesc{
      .a = Tensor({2, 3}, DataType::kInt8, {0, 1}), .b = Tensor({2, 3}, DataType::kInt8)});
  ASSERT_TRUE(desc.ok()) << desc.status();
  EXPECT_EQ(desc->outputs[0], Tensor({2, 3}, DataType::kInt8));
  EXPECT_EQ(ToString(*desc),
            "element_wise_add(a=INT8[2,3] strides [0,1], b=INT8[2,3], output=INT8[2,3])");
}

TEST(ValidateElementWiseAdd, RefusesTensorsThatDiffer) {
  struct Refusal {
    ElementWiseAddDesc desc;
    const char* field;
    const char* sentence;
  };
  const TensorDesc a = Tensor({2, 4});
  const Refusal kRefusals[] = {
      {{.a = a, .b = Tensor({2, 4, 1})}, "b.sizes", "b.sizes has 3 dimensions, but a.sizes has 2."},
      {{.a = a, .b = Tensor({2, 3})}, "b.sizes[1]", "b.sizes[1] is 3, but a.sizes[1] is 4."},
      {{.a = a, .b = Tensor({1, 4})}, "b.sizes[0]", "b.sizes[0] is 1, but a.sizes[0] is 2."},
      {{.a = a, .b = Tensor({2, 4}, DataType::kInt8)},
       "b.data_type",
       "b.data_type (INT8) differs from a.data_type (FLOAT32)."},
      {{.a = a, .b = Tensor({2, 0})}, "b.sizes[1]", "b.sizes[1] (0) is below 1."},
      {{.a = a, .b = a, .output = Tensor({2, 5})},
       "output.sizes[1]",
       "output.sizes[1] is 5, but 4 is what the operator writes there."},
      {{.a = a, .b = a, .output = Tensor({8})},
       "output.sizes",
       "output.sizes has 1 dimensions, but a.sizes has 2."},
      {{.a = a, .b = a, .output = Tensor({2, 4}, DataType::kFloat16)},
       "output.data_type",
       "output.data_type (FLOAT16) differs from a.data_type (FLOAT32)."},
      {{.a = a, .b = a, .output = Tensor({2, 4}, DataType::kFloat32, {0, 1})},
       "output.strides",
       "output.strides [0,1] with sizes [2,4] put two elements of an output in one place."},
      {{.a = Tensor({2}, DataType::kFloat64), .b = Tensor({2}, DataType::kFloat64)},
       "a.data_type",
       "a.data_type FLOAT64 is taken by no operator."},
  };
  for (const Refusal& refusal : kRefusals) {
    const absl::Status status = Validate(refusal.desc).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refusal.sentence;
    EXPECT_EQ(status.message(), refusal.sentence);
    EXPECT_EQ(FieldOf(status).value_or("none"), refusal.field) << refusal.sentence;
  }
}

OperatorPlan PlanAdd(TensorDesc a, TensorDesc b, std::vector<uint32_t> output_strides = {},
                     const PlanOptions& options = Software()) {
  const TensorDesc output = Tensor(a.sizes, a.data_type, std::move(output_strides));
  return Plan(ElementWiseAddDesc{.a = std::move(a), .b = std::move(b), .output = output}, options);
}

TEST(PlanElementWiseAdd, AddsQuadsWhereRowsStartAtThem) {
  struct Case {
    std::string name;
    std::vector<uint32_t> a_strides, b_strides, output_strides;
    uint32_t width;
    std::string a, b;  // how they are loaded
  };
  const std::vector<uint32_t> sizes = {6, 20};
  const Case kCases[] = {
      {"packed", {}, {}, {}, 4, "QUAD32(0)", "QUAD32(1)"},
      {"a row for all", {}, {0, 1}, {}, 4, "QUAD32(0)", "QUAD32(1)"},
      {"an element for each row", {1, 0}, {}, {}, 4, "ONE32(0)", "QUAD32(1)"},
      {"an element for all", {}, {0, 0}, {}, 4, "QUAD32(0)", "ONE32(1)"},
      {"one for each row and one for all", {3, 0}, {0, 0}, {}, 4, "ONE32(0)", "ONE32(1)"},
      {"padded", {24, 1}, {28, 1}, {32, 1}, 4, "QUAD32(0)", "QUAD32(1)"},
      {"a's rows start inside quads", {21, 1}, {}, {}, 1, "ONE32(0)", "ONE32(1)"},
      {"the output's rows start inside quads", {}, {}, {21, 1}, 1, "ONE32(0)", "ONE32(1)"},
      {"a's elements are apart", {40, 2}, {}, {}, 1, "ONE32(0)", "ONE32(1)"},
      {"transposed", {}, {1, 6}, {}, 1, "ONE32(0)", "ONE32(1)"},
      {"all transposed", {1, 6}, {1, 6}, {1, 6}, 4, "QUAD32(0)", "QUAD32(1)"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const OperatorPlan plan =
        PlanAdd(Tensor(sizes, DataType::kFloat32, c.a_strides),
                Tensor(sizes, DataType::kFloat32, c.b_strides), c.output_strides);
    EXPECT_THAT(Entries(plan), ElementsAre("Map"));
    EXPECT_EQ(Macro(plan.kernels[0], "WIDTH"), c.width);
    EXPECT_THAT(plan.kernels[0].text, AllOf(HasSubstr(c.a), HasSubstr(c.b)));
  }
}

TEST(PlanElementWiseAdd, WalksPackedTensorsAsOneRow) {
  const OperatorPlan plan = PlanAdd(Tensor({3, 5, 7}), Tensor({3, 5, 7}));
  ASSERT_THAT(plan.passes, SizeIs(1));
  EXPECT_THAT(plan.passes[0].fills, IsEmpty());
  const Dispatch& add = plan.passes[0].dispatches.at(0);
  EXPECT_EQ(add.reads[0].role, BufferRole::Input(0));
  EXPECT_EQ(add.reads[1].role, BufferRole::Input(1));
  EXPECT_EQ(add.writes[0].format, ViewFormat::kVector);
  EXPECT_EQ(add.writes[0].element_count, 27u);
  const auto constants = add.constants.As<ElementwiseConstants>();
  EXPECT_EQ(constants.rank, 1u);
  EXPECT_EQ(constants.row_length, 105u);
  EXPECT_EQ(constants.groups.unit_count, 27u);
}

TEST(PlanElementWiseAdd, WritesElementsThroughViewsOfTheirSize) {
  const std::pair<DataType, ViewFormat> kFormats[] = {{DataType::kInt8, ViewFormat::kUint8},
                                                      {DataType::kFloat16, ViewFormat::kUint16},
                                                      {DataType::kFloat32, ViewFormat::kUint32},
                                                      {DataType::kInt64, ViewFormat::kUint32x2}};
  for (const auto& [type, format] : kFormats) {
    const OperatorPlan plan = PlanAdd(Tensor({9, 5}, type), Tensor({9, 5}, type, {1, 9}), {1, 10});
    EXPECT_EQ(Macro(plan.kernels[0], "WIDTH"), 1u);
    EXPECT_EQ(plan.passes[0].dispatches[0].writes[0].format, format);
    EXPECT_THAT(plan.passes[0].fills, SizeIs(1)) << "for the gaps";
  }
}

TEST(PlanElementWiseAdd, CutsWhatReachesPastAView) {
  PlanOptions options = Software();
  options.max_view_elements = 64;
  struct Case {
    std::string name;
    TensorDesc a, b;
    std::vector<uint32_t> output_strides;
  };
  const Case kCases[] = {
      {"one row", Tensor({1001}), Tensor({1001}), {}},
      {"rows",
       Tensor({9, 250}, DataType::kInt8, {256, 1}),
       Tensor({9, 250}, DataType::kInt8, {0, 1}),
       {272, 1}},
      {"one element for all", Tensor({1001}), Tensor({1001}, DataType::kFloat32, {0}), {}},
      {"elements apart", Tensor({301}, DataType::kFloat32, {9}), Tensor({301}), {}},
      {"far rows",
       Tensor({3, 16}, DataType::kInt64, {100'000, 1}),
       Tensor({3, 16}, DataType::kInt64),
       {}},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const OperatorPlan plan = PlanAdd(c.a, c.b, c.output_strides, options);
    uint64_t elements = 0;
    for (const Dispatch& dispatch : plan.passes.back().dispatches) {
      const auto constants = dispatch.constants.As<ElementwiseConstants>();
      const uint64_t row_units = constants.dims[constants.rank - 1].size;
      elements += constants.groups.unit_count / row_units * constants.row_length;
      for (const BufferView& view : {dispatch.reads[0], dispatch.reads[1], dispatch.writes[0]}) {
        EXPECT_LE(view.element_count, options.max_view_elements);
        EXPECT_GE(view.element_count, 1u);
      }
    }
    EXPECT_GT(plan.passes.back().dispatches.size(), 1u);
    EXPECT_EQ(elements, ElementCount(c.a));
  }
}

TEST(PlanElementWiseAdd, RefusesStridesThatNeedTooManyDispatches) {
  PlanOptions options;
  options.max_view_elements = 4096;
  const TensorDesc far = Tensor({1u << 18}, DataType::kFloat32, {1u << 20});
  const auto plan = TryPlan(ElementWiseAddDesc{.a = far, .b = Tensor({1u << 18})}, options);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
}

TEST(ElementwiseSpace, CollapsesDimensionsThatAllTensorsWalkAsOne) {
  const TensorDesc packed = Tensor({2, 3, 4, 5});
  const TensorDesc inputs[] = {packed, Tensor({2, 3, 4, 5}, DataType::kFloat32, {0, 0, 5, 1})};
  const ElementwiseSpace space = MakeElementwiseSpace(inputs, packed);
  ASSERT_THAT(space.dims, SizeIs(2));
  EXPECT_EQ(space.dims[0], (ElementwiseSpace::Dim{6, {20, 0, 0, 0, 0, 0, 0, 0, 20}}));
  EXPECT_EQ(space.row(), (ElementwiseSpace::Dim{20, {1, 1, 0, 0, 0, 0, 0, 0, 1}}));
}

TEST(ElementwiseSpace, HasARowOfASingleElement) {
  const TensorDesc one = Tensor({1, 1}, DataType::kInt8, {7, 9});
  const ElementwiseSpace space = MakeElementwiseSpace({one, one}, one);
  EXPECT_THAT(space.dims, ElementsAre(ElementwiseSpace::Dim{1, {1, 1, 0, 0, 0, 0, 0, 0, 1}}));
  EXPECT_TRUE(WalksGroups(space, 4));
}

}  // namespace
}  // namespace opmill
