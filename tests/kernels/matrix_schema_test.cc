// Which descriptors of gemm and convolution are valid, and their outputs and plans.
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_plan.h"

namespace opmill {
namespace {

using enum DataType;

TensorDesc Tensor(std::vector<uint32_t> sizes, DataType type = kFloat32) {
  return {type, std::move(sizes), {}};
}

GemmDesc Gemm() { return {.a = Tensor({2, 5, 3}), .b = Tensor({2, 3, 4})}; }
ConvolutionDesc Image() {
  return {.input = Tensor({2, 6, 9, 8}),
          .filter = Tensor({4, 3, 3, 2}),
          .bias = Tensor({1, 4, 1, 1}),
          .group_count = 2};
}

std::vector<uint32_t> SizesOf(const OperatorDesc& desc) {
  const absl::StatusOr<OperatorDesc> validated = Validate(desc);
  EXPECT_TRUE(validated.ok()) << validated.status();
  return validated.ok() ? validated->outputs[0]->sizes : std::vector<uint32_t>();
}

using ::testing::ElementsAre;

TEST(ValidateGemm, InfersTheOutput) {
  EXPECT_THAT(SizesOf(Gemm()), ElementsAre(2, 5, 4));
  GemmDesc desc = {.a = Tensor({3, 5}), .b = Tensor({4, 3}), .c = Tensor({5, 4})};
  desc.trans_a = desc.trans_b = MatrixTransform::kTranspose;
  EXPECT_THAT(SizesOf(desc), ElementsAre(5, 4));
}

TEST(ValidateConvolution, InfersTheOutput) {
  EXPECT_THAT(SizesOf(Image()), ElementsAre(2, 4, 7, 7));
  ConvolutionDesc desc = Image();
  desc.strides = {2, 3};
  desc.dilations = {1, 4};
  desc.start_padding = {1, 0};
  desc.end_padding = {0, 5};
  EXPECT_THAT(SizesOf(desc), ElementsAre(2, 4, 4, 3));
  desc = {.input = Tensor({1, 4, 5}), .filter = Tensor({4, 3, 2})};
  desc.direction = ConvolutionDirection::kBackward;
  desc.group_count = 2;
  desc.strides = {3};
  desc.dilations = {2};
  desc.start_padding = {1};
  desc.end_padding = {2};
  desc.output_padding = {1};
  EXPECT_THAT(SizesOf(desc), ElementsAre(1, 6, 13));
}

struct Refusal {
  OperatorDesc desc;
  const char* field;
  const char* sentence;
};

template <typename Desc>
OperatorDesc With(Desc desc, const std::function<void(Desc&)>& change) {
  change(desc);
  return desc;
}

TEST(ValidateMatrix, RefusesWithASentence) {
  const auto gemm = [](const std::function<void(GemmDesc&)>& change) {
    return With(Gemm(), change);
  };
  const auto image = [](const std::function<void(ConvolutionDesc&)>& change) {
    return With(Image(), change);
  };
  const Refusal refusals[] = {
      {gemm([](auto& d) { d.a = Tensor({3}); }), "a.sizes",
       "a.sizes has 1 dimensions; a matrix has 2 or more."},
      {gemm([](auto& d) {
         d.b = Tensor({3, 4});
       }),
       "b.sizes", "b.sizes has 2 dimensions, but a.sizes has 3."},
      {gemm([](auto& d) { d.b.data_type = kFloat16; }), "b.data_type",
       "b.data_type (FLOAT16) differs from a.data_type (FLOAT32)."},
      {gemm([](auto& d) {
         d.b = Tensor({3, 3, 4});
       }),
       "b.sizes[0]", "b.sizes[0] is 3, but a has 2."},
      {gemm([](auto& d) {
         d.b = Tensor({2, 4, 4});
       }),
       "b.sizes[1]", "b.sizes[1] is 4, but the sum over the columns of A has length 3."},
      {gemm([](auto& d) { d.trans_b = MatrixTransform::kTranspose; }), "b.sizes[2]",
       "b.sizes[2] is 4, but the sum over the columns of A has length 3."},
      {gemm([](auto& d) {
         d.c = Tensor({2, 5, 1});
       }),
       "c.sizes[2]", "c.sizes[2] is 1, but the product has 4."},
      {gemm([](auto& d) { d.trans_a = MatrixTransform(2); }), "trans_a",
       "trans_a (2) is unknown; 0 to 1 are allowed."},
      {image([](auto& d) {
         d.input = Tensor({2, 6});
       }),
       "input.sizes",
       "input.sizes has 2 dimensions; a batch, a channel and a spatial dimension are the least."},
      {image([](auto& d) {
         d.filter = Tensor({4, 3, 3});
       }),
       "filter.sizes", "filter.sizes has 3 dimensions, but input.sizes has 4."},
      {image([](auto& d) { d.strides = {1}; }), "strides",
       "strides has 1 numbers, but input has 2 spatial dimensions."},
      {image([](auto& d) {
         d.dilations = {1, 0};
       }),
       "dilations[1]", "dilations[1] (0) is below 1."},
      {image([](auto& d) {
         d.output_padding = {0, 1};
       }),
       "output_padding[1]",
       "output_padding[1] is 1, but direction FORWARD takes no output padding."},
      {image([](auto& d) { d.group_count = 0; }), "group_count", "group_count (0) is below 1."},
      {image([](auto& d) { d.group_count = 4; }), "group_count",
       "group_count (4) does not divide the input channels (6)."},
      {image([](auto& d) { d.group_count = 3; }), "group_count",
       "group_count (3) does not divide filter.sizes[0] (4)."},
      {image([](auto& d) { d.group_count = 1; }), "filter.sizes[1]",
       "filter.sizes[1] is 3, but the input has 6 channels in a group."},
      {image([](auto& d) {
         d.bias = Tensor({1, 5, 1, 1});
       }),
       "bias.sizes[1]", "bias.sizes[1] is 5, but a bias for 4 output channels has 4 there."},
      {image([](auto& d) {
         d.dilations = {5, 1};
       }),
       "filter.sizes[2]",
       "The filter covers 11 elements of dimension 2, more than the padded input has (9)."},
      {image([](auto& d) {
         d.input = Tensor({1, 1, 70000, 1});
         d.filter = Tensor({1, 1, 65537, 1});
         d.bias.reset();
         d.group_count = 1;
       }),
       "filter.sizes", "filter.sizes gives a window of 65537 elements; the limit is 65536."},
      {image([](auto& d) {
         d.filter = Tensor({6, 2, 3, 2});
         d.direction = ConvolutionDirection::kBackward;
         d.start_padding = {20, 0};
       }),
       "start_padding[0]", "The padding of dimension 2 (20) leaves nothing of the output (11)."},
      {image([](auto& d) {
         d.filter = Tensor({6, 2, 3, 2});
         d.direction = ConvolutionDirection::kBackward;
         d.strides = {4000000000, 1};
       }),
       "filter.sizes[2]", "The output would be larger than 4294967295 along dimension 2."}};
  for (const Refusal& refusal : refusals) {
    const absl::Status status = Validate(refusal.desc).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), refusal.sentence);
    EXPECT_EQ(FieldOf(status), refusal.field) << refusal.sentence;
  }
}

TEST(PlanGemm, DividesWhatDoesNotFitIntoViews) {
  const OperatorDesc desc =
      Validate(GemmDesc{.a = Tensor({4, 300, 20}), .b = Tensor({4, 20, 500})}).value();
  const OperatorPlan whole = MakePlan(desc, {}).value();
  EXPECT_EQ(whole.passes[0].dispatches.size(), 1u);
  const OperatorPlan divided = MakePlan(desc, {.max_view_elements = 20000}).value();
  EXPECT_GT(divided.passes[0].dispatches.size(), 30u);
  for (const Dispatch& dispatch : divided.passes[0].dispatches) {
    EXPECT_LE(dispatch.writes[0].element_count, 20000u);
  }
}

TEST(PlanConvolution, RefusesAnImageThatNoViewHolds) {
  const OperatorDesc desc = Validate(Image()).value();
  EXPECT_EQ(MakePlan(desc, {.max_view_elements = 100}).status().message(),
            "The elements that one sum reads or an image writes reach further than a view of 100 "
            "elements.");
}

}  // namespace
}  // namespace opmill
