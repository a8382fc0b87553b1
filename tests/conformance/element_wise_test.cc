// Every row of element_wise_rows.inc, in every type, on every device; and chains. Where kernels are
// compiled, a sample: every row in one of its types, unless OPMILL_CONFORMANCE=full.
#include "kernels/operators/elementwise/element_wise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/operator_plan.h"
#include "tests/conformance/element_wise_verdict.h"
#include "tests/conformance/values.h"
#include "tests/support/programs.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using Bytes = std::vector<std::byte>;

// The rows' attributes without a default.
AttributeValue ValueOf(const AttributeSchema& attribute, DataType type) {
  const absl::StatusOr<AttributeValue> value = DefaultOf(attribute);
  if (value.ok()) return *value;
  if (attribute.kind == AttributeKind::kFloat) return 1.5f;
  if (attribute.name == "max") return Scalar(int64_t{7});
  return Scalar(int64_t{IsSigned(type) ? -3 : 2});
}

// Packed, with a broadcast last operand, and with strides that quads cannot follow.
enum class Layout { kPacked, kBroadcast, kStrided };

OperatorDesc DescOf(ElementWiseOp op, DataType type, DataType result, Layout layout) {
  const OperatorSchema& schema = SchemaOf(op);
  const std::vector<uint32_t> sizes = {3, 7, 37};
  OperatorDesc desc = {.schema = &schema};
  for (const TensorSchema& input : schema.inputs) {
    const DataType of = input.type == TypeVariable::kOther ? DataType::kUint8 : type;
    TensorDesc tensor = {of, sizes, {}};
    if (layout == Layout::kStrided) tensor.strides = {1, 3, 21};
    desc.inputs.push_back(tensor);
  }
  if (layout == Layout::kBroadcast) desc.inputs.back().strides = {37, 0, 0};
  desc.outputs = {TensorDesc{result, sizes, {}}};
  if (layout == Layout::kStrided) desc.outputs[0]->strides = {7 * 41, 41, 1};
  for (const AttributeSchema& attribute : schema.attributes) {
    desc.attributes.push_back(ValueOf(attribute, type));
  }
  return desc;
}

std::vector<DataType> ResultsOf(ElementWiseOp op, DataType type) {
  const FeatureLevelRow& row = SchemaOf(op).support[0].rows[0];
  return row.result_types.empty() ? std::vector<DataType>{type} : row.result_types.types();
}

class ElementWiseTest : public DeviceTest {
 protected:
  // Returns the first mistake, or "".
  std::string MistakeOf(const OperatorDesc& desc, ValuePattern values) {
    const absl::StatusOr<OperatorDesc> validated = Validate(desc);
    if (!validated.ok()) return std::string(validated.status().message());
    std::vector<Bytes> inputs;
    for (const TensorDesc& input : validated->inputs) {
      inputs.push_back(
          MakeValues(values, input.data_type, RequiredBytes(input), 1, inputs.size() + 11));
    }
    const absl::StatusOr<std::vector<Bytes>> outputs = RunValidated(device(), *validated, inputs);
    if (!outputs.ok()) return outputs.status().ToString();
    const std::string mistake = FindElementWiseMistake(*validated, inputs, (*outputs)[0]);
    return mistake.empty() ? "" : absl::StrCat(mistake, " with values ", ToString(values));
  }
};

// The row's descriptors for all types and layouts; of casts, only packed ones.
std::vector<OperatorDesc> DescsOf(ElementWiseOp op) {
  const bool is_cast = RowOf(op).result == ElementWiseResult::kCast;
  std::vector<OperatorDesc> descs;
  for (const DataType type : SchemaOf(op).support[0].rows[0].types.types()) {
    for (const DataType result : ResultsOf(op, type)) {
      for (const Layout layout : {Layout::kPacked, Layout::kBroadcast, Layout::kStrided}) {
        if (is_cast && layout != Layout::kPacked) continue;
        descs.push_back(DescOf(op, type, result, layout));
      }
    }
  }
  return descs;
}

TEST_P(ElementWiseTest, EveryRowComputesEveryType) {
  const DeviceKind kind = device().info().kind;
  const bool compiles = kind == DeviceKind::kSoftware || kind == DeviceKind::kHardware;
  const char* const table = std::getenv("OPMILL_CONFORMANCE");
  const bool is_sample = compiles && (table == nullptr || std::string_view(table) != "full");
  for (size_t i = 0; i < kElementWiseOps; ++i) {
    const std::vector<OperatorDesc> descs = DescsOf(static_cast<ElementWiseOp>(i));
    // Another type and layout for each row, and several of rows that have many.
    const size_t step = is_sample ? std::min<size_t>(descs.size(), 29) : 1;
    for (size_t k = i * 7 % step; k < descs.size(); k += step) {
      const OperatorDesc& desc = descs[k];
      for (const ValuePattern values : {ValuePattern::kNumbers, ValuePattern::kSpecials,
                                        ValuePattern::kRandomBits, ValuePattern::kTies}) {
        EXPECT_EQ(MistakeOf(desc, values), "") << ToString(desc);
      }
    }
  }
}

ChainStep Step(ElementWiseOp op, std::vector<uint32_t> operands, std::vector<float> parameters = {},
               DataType type = DataType::kFloat32) {
  ChainStep step = {.op = op, .type = type, .operands = std::move(operands)};
  for (const float p : parameters) step.parameters.push_back(std::bit_cast<uint32_t>(p));
  return step;
}

// Ten operations on two inputs, each of which takes the value before it.
Chain TenSteps(const std::vector<uint32_t>& sizes, DataType type) {
  using enum ElementWiseOp;
  const TensorDesc tensor = {type, sizes, {}};
  Chain chain = {.inputs = {tensor, tensor}, .output = tensor};
  chain.steps = {Step(kLinear, {0}, {1.0f, 3.0f}, type),
                 Step(kHardSigmoid, {2}, {0.25f, 0.5f}, type),
                 Step(kMultiply, {3, 0}, {}, type),
                 Step(kAdd, {4, 1}, {}, type),
                 Step(kRelu, {5}, {}, type),
                 Step(kSubtract, {6, 1}, {}, type),
                 Step(kMax, {7, 0}, {}, type),
                 Step(kLeakyRelu, {8}, {0.01f}, type),
                 Step(kMultiply, {1, 9}, {}, type),
                 Step(kMean, {10, 0}, {}, type)};
  return chain;
}

// Every step as an operator of its own.
absl::StatusOr<Bytes> RunUnfused(Device& device, const Chain& chain, std::vector<Bytes> values) {
  for (const ChainStep& step : chain.steps) {
    Chain one = {.output = chain.output, .steps = {step}};
    one.output.data_type = step.type;
    std::vector<Bytes> inputs;
    for (uint32_t i = 0; i < step.operands.size(); ++i) {
      TensorDesc input = chain.output;
      input.data_type = chain.TypeOf(step.operands[i]);
      one.inputs.push_back(input);
      one.steps[0].operands[i] = i;
      inputs.push_back(values[step.operands[i]]);
    }
    const absl::StatusOr<OperatorDesc> desc = DescribeChain(one);
    if (!desc.ok()) return desc.status();
    absl::StatusOr<std::vector<Bytes>> outputs = RunValidated(device, *desc, inputs);
    if (!outputs.ok()) return outputs.status();
    values.push_back((*outputs)[0]);
  }
  return values.back();
}

struct BothResults {
  Bytes fused;
  Bytes unfused;
};

absl::StatusOr<BothResults> RunBothWays(Device& device, const Chain& chain,
                                        const std::vector<Bytes>& inputs) {
  ASSIGN_OR_RETURN(const OperatorDesc desc, DescribeChain(chain));
  ASSIGN_OR_RETURN(std::vector<Bytes> fused, RunValidated(device, desc, inputs));
  ASSIGN_OR_RETURN(Bytes unfused, RunUnfused(device, chain, inputs));
  return BothResults{std::move(fused[0]), std::move(unfused)};
}

TEST_P(ElementWiseTest, AChainHasTheBitsOfItsOperators) {
  using enum ElementWiseOp;
  const std::vector<uint32_t> sizes = {5, 1001};
  std::vector<Chain> chains = {TenSteps(sizes, DataType::kFloat32),
                               TenSteps(sizes, DataType::kFloat16)};
  // Values that are used twice, other types, and functions.
  chains.push_back(TenSteps(sizes, DataType::kFloat32));
  chains.back().steps = {Step(kSigmoid, {0}),
                         Step(kMultiply, {2, 0}),
                         Step(kLogicalLessThan, {2, 1}, {}, DataType::kUint8),
                         Step(kIf, {4, 3, 1}),
                         Step(kTanh, {5}),
                         Step(kCast, {6}, {}, DataType::kInt32),
                         Step(kMultiply, {7, 7}, {}, DataType::kInt32),
                         Step(kCast, {8}),
                         Step(kAdd, {9, 3})};
  for (const Chain& chain : chains) {
    const DataType type = chain.inputs[0].data_type;
    const std::vector<Bytes> inputs = {
        MakeValues(ValuePattern::kNumbers, type, RequiredBytes(chain.inputs[0]), 1, 1),
        MakeValues(ValuePattern::kNumbers, type, RequiredBytes(chain.inputs[1]), 1, 2)};
    const auto results = RunBothWays(device(), chain, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(results->fused == results->unfused) << ToString(*DescribeChain(chain));
  }
}

// The number of differing words, where NaNs are equal to each other.
size_t CountDifferences(const Bytes& a, const Bytes& b) {
  size_t count = 0;
  for (size_t at = 0; at < a.size(); at += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.data() + at, sizeof(x));
    std::memcpy(&y, b.data() + at, sizeof(y));
    const bool are_nan = std::isnan(x) && std::isnan(y);
    if (!are_nan && std::memcmp(&x, &y, sizeof(x)) != 0) ++count;
  }
  return count;
}

TEST_P(ElementWiseTest, AChainOverManyElementsHasTheBitsOfItsOperators) {
  if (device().info().kind == DeviceKind::kReference) GTEST_SKIP() << "it would take a minute";
  const Chain chain = TenSteps({16, 1u << 20}, DataType::kFloat32);
  const std::vector<Bytes> inputs = {
      MakeValues(ValuePattern::kNumbers, DataType::kFloat32, RequiredBytes(chain.output), 1, 1),
      MakeValues(ValuePattern::kSpecials, DataType::kFloat32, RequiredBytes(chain.output), 1, 2)};
  const auto results = RunBothWays(device(), chain, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(CountDifferences(results->fused, results->unfused), 0u);
}

TEST(PlanChain, IsOneDispatchWithOneKernel) {
  const absl::StatusOr<OperatorDesc> desc =
      DescribeChain(TenSteps({16, 1u << 20}, DataType::kFloat32));
  ASSERT_TRUE(desc.ok()) << desc.status();
  const absl::StatusOr<OperatorPlan> plan =
      MakePlan(*desc, PlanOptionsFor(SizeOf(DeviceKind::kSoftware, 0, 0)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kernels.size(), 1u);
  ASSERT_EQ(plan->passes.size(), 1u);
  EXPECT_EQ(plan->passes[0].dispatches.size(), 1u);
}

TEST_P(ElementWiseTest, TenOperationsTakeLittleMoreThanOne) {
  if (device().info().kind != DeviceKind::kCpu) GTEST_SKIP() << "for the processor";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's checks cost more than the operations";
#endif
  const Chain ten = TenSteps({16, 1u << 20}, DataType::kFloat32);
  Chain one = ten;
  one.steps = {Step(ElementWiseOp::kAdd, {0, 1})};
  const std::vector<Bytes> inputs = {
      MakeValues(ValuePattern::kNumbers, DataType::kFloat32, RequiredBytes(ten.output), 1, 1),
      MakeValues(ValuePattern::kNumbers, DataType::kFloat32, RequiredBytes(ten.output), 1, 2)};
  std::vector<double> best(2, 1e9);
  for (int round = 0; round < 8; ++round) {
    for (const size_t i : {0, 1}) {
      absl::Duration executed;
      const auto outputs =
          RunValidated(device(), *DescribeChain(i == 0 ? one : ten), inputs, &executed);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      best[i] = std::min(best[i], absl::ToDoubleMilliseconds(executed));
    }
  }
  std::printf("one operation: %.1f ms, ten in a chain: %.1f ms\n", best[0], best[1]);
  // A busy machine may disturb either; the bound for quiet ones is 1.5.
  EXPECT_LT(best[1], 3 * best[0]);
}

TEST(DescribeChain, RefusesWhatDevicesCannotCompute) {
  Chain chain = TenSteps({4}, DataType::kFloat32);
  chain.steps[0].operands = {5};
  EXPECT_THAT(std::string(DescribeChain(chain).status().message()),
              ::testing::HasSubstr("Operand 0 of step 0, linear, is no input or earlier step."));
  chain = TenSteps({4}, DataType::kFloat32);
  chain.steps[2].type = DataType::kInt32;
  EXPECT_THAT(std::string(DescribeChain(chain).status().message()),
              ::testing::HasSubstr("Step 2, multiply, does not write INT32."));
  chain.steps.clear();
  EXPECT_THAT(std::string(DescribeChain(chain).status().message()),
              ::testing::HasSubstr("0 steps"));
}

INSTANTIATE_TEST_SUITE_P(On, ElementWiseTest, ::testing::ValuesIn(TestDevices()));

}  // namespace
}  // namespace opmill
