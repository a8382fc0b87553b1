// Fused programs have fewer nodes, and give the bytes of the programs that they were made from.
#include "kernels/operators/elementwise/fuse_chains.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/conformance/random.h"
#include "tests/kernels/random_program.h"
#include "tests/support/programs.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using Op = ElementWiseOp;

TensorDesc Floats(std::vector<uint32_t> sizes, std::vector<uint32_t> strides = {}) {
  return {DataType::kFloat32, std::move(sizes), std::move(strides)};
}

// With default attributes.
uint32_t Add(ProgramBuilder& b, Op op, std::vector<uint32_t> values) {
  std::vector<TensorDesc> tensors;
  for (const uint32_t value : values) tensors.push_back(b.tensor(value));
  return b.Add(DescOf(SchemaOf(op), std::move(tensors), {}), {values.begin(), values.end()})[0];
}

// On every device the same bytes as before. Returns the number of nodes after.
size_t Fuse(const ProgramBuilder& builder) {
  const Program program = *Validate(builder.program());
  const Program fused = FuseChains(program);
  const std::vector<TensorBytes> inputs = RandomInputs(program, 1);
  for (const std::string& name : TestDevices()) {
    const auto device = OpenTestDevice(name);
    if (!device.ok() && !RequiresDevices()) continue;
    EXPECT_TRUE(device.ok()) << device.status();
    const auto expected = RunProgram(**device, program, inputs);
    EXPECT_TRUE(expected.ok()) << expected.status();
    const auto compiled = (*device)->Compile(fused);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    const Bindings bindings = *BindProgram(**device, fused, inputs);
    EXPECT_TRUE((*device)->RunAndWait(*compiled, bindings).ok());
    EXPECT_EQ(OutputBytes(fused, bindings), *expected) << name << ": " << ToString(fused);
  }
  return fused.nodes.size();
}

TEST(FuseChains, JoinsWhatFollowsOneAfterTheOther) {
  ProgramBuilder b;
  uint32_t x = b.Input(Floats({100, 33}));
  for (const Op op : {Op::kAbs, Op::kSqrt, Op::kNegate, Op::kSigmoid}) x = Add(b, op, {x});
  EXPECT_EQ(Fuse(b.Return(x)), 1u);
}

TEST(FuseChains, JoinsATree) {
  ProgramBuilder b;
  const uint32_t x = b.Input(Floats({64, 50}));
  const uint32_t y = b.Input(Floats({64, 50}, {0, 1}));
  const uint32_t left = Add(b, Op::kMultiply, {Add(b, Op::kAbs, {x}), y});
  const uint32_t right = Add(b, Op::kSubtract, {y, Add(b, Op::kCeil, {x})});
  EXPECT_EQ(Fuse(b.Return(Add(b, Op::kMax, {left, right}))), 1u);
}

TEST(FuseChains, KeepsWhatOthersReadToo) {
  ProgramBuilder b;
  const TensorDesc tensor = Floats({20, 30});
  const uint32_t shared = Add(b, Op::kAbs, {b.Input(tensor)});
  const uint32_t root = Add(b, Op::kSqrt, {shared});
  const uint32_t sum = b.Add(
      ReduceDesc{.function = ReduceFunction::kSum, .input = tensor, .axes = {1}}, {shared})[0];
  EXPECT_EQ(Fuse(b.Return(root).Return(sum)), 3u);
}

TEST(FuseChains, KeepsOutputs) {
  ProgramBuilder b;
  const uint32_t magnitude = Add(b, Op::kAbs, {b.Input(Floats({77}))});
  EXPECT_EQ(Fuse(b.Return(magnitude).Return(Add(b, Op::kSqrt, {magnitude}))), 2u);
}

TEST(FuseChains, JoinsAValueThatOneNodeReadsTwice) {
  ProgramBuilder b;
  const uint32_t magnitude = Add(b, Op::kAbs, {b.Input(Floats({77}))});
  EXPECT_EQ(Fuse(b.Return(Add(b, Op::kMultiply, {magnitude, magnitude}))), 1u);
}

TEST(FuseChains, KeepsWhatIsReadInAnotherOrder) {
  ProgramBuilder b;
  const uint32_t x = Add(b, Op::kAbs, {b.Input(Floats({8, 8}))});
  OperatorDesc transposed = {
      .schema = &SchemaOf(Op::kSqrt), .inputs = {Floats({8, 8}, {1, 8})}, .outputs = {{}}};
  EXPECT_EQ(Fuse(b.Return(b.Add(transposed, {x})[0])), 2u);
}

TEST(FuseChains, KeepsASmallResultThatIsBroadcast) {
  ProgramBuilder b;
  const uint32_t row = Add(b, Op::kAbs, {b.Input(Floats({1, 50}))});
  const uint32_t x = b.Input(Floats({40, 50}));
  OperatorDesc sum = {.schema = &SchemaOf(Op::kAdd),
                      .inputs = {Floats({40, 50}), Floats({40, 50}, {0, 1})},
                      .outputs = {{}}};
  EXPECT_EQ(Fuse(b.Return(b.Add(sum, {x, row})[0])), 2u);
}

TEST(FuseChains, StaysWithinTheInputsOfAKernel) {
  ProgramBuilder b;
  uint32_t sum = b.Input(Floats({300}));
  for (int i = 0; i < 11; ++i) sum = Add(b, Op::kAdd, {sum, b.Input(Floats({300}))});
  EXPECT_EQ(Fuse(b.Return(sum)), 2u);
}

TEST(FuseChains, StaysWithinItsSteps) {
  ProgramBuilder b;
  uint32_t x = b.Input(Floats({300}));
  for (int i = 0; i < 40; ++i) x = Add(b, i % 2 == 0 ? Op::kNegate : Op::kAbs, {x});
  EXPECT_EQ(Fuse(b.Return(x)), 2u);
}

TEST(FuseChains, JoinsTypesThatAChainTakes) {
  ProgramBuilder b;
  const TensorDesc halves = {DataType::kFloat16, {40, 9}, {}};
  const uint32_t x = b.Input(halves);
  const uint32_t product = Add(b, Op::kMultiply, {Add(b, Op::kAbs, {x}), b.Input(halves)});
  const uint32_t larger = Add(b, Op::kLogicalGreaterThan, {product, x});  // UINT8
  EXPECT_EQ(Fuse(b.Return(Add(b, Op::kLogicalNot, {larger}))), 1u);
}

TEST(FuseChains, GivesTheBytesOfRandomPrograms) {
  constexpr Op kOps[] = {Op::kAbs,      Op::kNegate, Op::kSigmoid, Op::kSqrt,  Op::kRelu, Op::kAdd,
                         Op::kMultiply, Op::kMax,    Op::kDivide,  Op::kFloor, Op::kIf};
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ProgramBuilder b;
    const TensorDesc tensor = Floats({31, 65});
    std::vector<uint32_t> values = {b.Input(tensor), b.Input(Floats({31, 65}, {1, 0}))};
    const uint32_t condition = Add(b, Op::kLogicalGreaterThan, {values[0], values[1]});
    for (int i = 0; i < 14; ++i) {
      const Op op = random.Pick(kOps);
      std::vector<uint32_t> inputs;
      if (op == Op::kIf) inputs.push_back(condition);
      while (inputs.size() < SchemaOf(op).inputs.size()) {
        const size_t back = 1 + random.Below(random.OneIn(3) ? values.size() : 2);
        inputs.push_back(values[values.size() - std::min(back, values.size())]);
      }
      values.push_back(Add(b, op, std::move(inputs)));
      if (random.OneIn(6)) b.Return(values.back());
    }
    Fuse(b.Return(values.back()));
  }
}

}  // namespace
}  // namespace opmill
