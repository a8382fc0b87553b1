// What the cpu device makes of a program: chains follow the operators that they read, operators
// keep constants, and what is joined is written in its place. None of this changes a bit.
#include "kernels/cpu/device/cpu_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/elementwise/fuse_chains.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/movement/movement.h"
#include "tests/kernels/random_program.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

using Op = ElementWiseOp;
using ::testing::HasSubstr;

TensorDesc Floats(std::vector<uint32_t> sizes, std::vector<uint32_t> strides = {}) {
  return {DataType::kFloat32, std::move(sizes), std::move(strides)};
}

uint32_t Add(ProgramBuilder& b, Op op, const std::vector<TensorDesc>& tensors,
             std::vector<ProgramView> values) {
  return b.Add(DescOf(SchemaOf(op), tensors, {}), std::move(values))[0];
}
uint32_t Add(ProgramBuilder& b, Op op, const std::vector<uint32_t>& values) {
  std::vector<TensorDesc> tensors;
  for (const uint32_t value : values) tensors.push_back(b.tensor(value));
  return Add(b, op, tensors, {values.begin(), values.end()});
}

// The program with its input `value` as a constant.
Program WithConstant(Program program, uint32_t value, std::vector<TensorBytes>& inputs) {
  const auto number =
      std::count_if(program.values.begin(), program.values.begin() + value,
                    [](const ProgramValue& before) { return before.kind == ValueKind::kInput; });
  const TensorBytes& bytes = inputs[static_cast<size_t>(number)];
  program.values[value].kind = ValueKind::kConstant;
  program.values[value].constant = ConstantData::Of(
      absl::MakeConstSpan(bytes).first(SpannedBytes(program.values[value].tensor)));
  inputs.erase(inputs.begin() + number);
  return program;
}

std::vector<TensorBytes> RunCompiled(Device& device,
                                     const std::shared_ptr<const CompiledProgram>& compiled,
                                     const std::vector<TensorBytes>& inputs) {
  const Bindings bindings = *BindProgram(device, compiled->program(), inputs);
  EXPECT_TRUE(device.RunAndWait(compiled, bindings).ok());
  return OutputBytes(compiled->program(), bindings);
}

std::vector<TensorBytes> RunOn(const Program& program, const std::vector<TensorBytes>& inputs,
                               uint32_t threads) {
  const std::unique_ptr<Device> device =
      CreateCpuDevice({.threads = threads, .max_inline_bytes = 0});
  const auto compiled = device->Compile(FuseChains(program));
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return RunCompiled(*device, *compiled, inputs);
}

// As many kernels as wanted, whose results are those of the nodes, for each number of threads, also
// if `weights` is a constant.
void ExpectKernels(size_t kernels, const ProgramBuilder& builder, uint32_t weights) {
  const Program program = *Validate(builder.program());
  std::vector<TensorBytes> inputs = RandomInputs(program, 1);
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  const auto expected = RunNodeByNode(*device, program, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(MakeCpuPlan(FuseChains(program)).nodes.size(), kernels) << ToString(program);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(RunOn(program, inputs, threads), *expected) << ToString(program);
  }
  const Program kept = WithConstant(program, weights, inputs);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(RunOn(kept, inputs, threads), *expected) << ToString(program);
  }
}

uint32_t Gemm(ProgramBuilder& b, uint32_t a, uint32_t w) {
  return b.Add(GemmDesc{.a = b.tensor(a), .b = b.tensor(w)}, {a, w})[0];
}

TEST(CpuPlan, AChainFollowsTheProductThatItReads) {
  for (const auto& [m, k, n] : {std::array<uint32_t, 3>{1, 70, 300},
                                {7, 33, 5},
                                {32, 384, 100},
                                {130, 800, 70},
                                {64, 1, 64}}) {
    ProgramBuilder b;
    const uint32_t a = b.Input(Floats({m, k}));
    const uint32_t w = b.Input(Floats({k, n}));
    const uint32_t bias = b.Input(Floats({n}));
    const uint32_t other = b.Input(Floats({m, n}));
    uint32_t x = Gemm(b, a, w);
    x = Add(b, Op::kAdd, {b.tensor(x), Floats({m, n}, {0, 1})}, {x, bias});
    x = Add(b, Op::kMultiply, {x, Add(b, Op::kSigmoid, {x})});
    ExpectKernels(1, b.Return(Add(b, Op::kAdd, {other, x})), w);
  }
}

TEST(CpuPlan, AChainFollowsTheLaterOfTwoProducts) {
  ProgramBuilder b;
  const uint32_t a = b.Input(Floats({40, 50}));
  const uint32_t w = b.Input(Floats({50, 60}));
  const uint32_t first = Add(b, Op::kRelu, {Gemm(b, a, w)});
  const uint32_t second = Gemm(b, first, b.Input(Floats({60, 60})));
  ExpectKernels(3, b.Return(Add(b, Op::kAdd, {second, Gemm(b, a, w)})), w);
}

TEST(CpuPlan, AChainOfTheSameElementsInOtherSizesFollows) {
  ProgramBuilder b;
  const uint32_t a = b.Input(Floats({2, 16, 30}));
  const uint32_t w = b.Input(Floats({1, 30, 24}));
  const uint32_t product =
      b.Add(GemmDesc{.a = b.tensor(a), .b = Floats({2, 30, 24}, {0, 24, 1})}, {a, w})[0];
  ExpectKernels(1, b.Return(Add(b, Op::kAbs, {Floats({4, 8, 24})}, {product})), w);
}

TEST(CpuPlan, OneChainFollowsAProduct) {
  ProgramBuilder b;
  const uint32_t w = b.Input(Floats({30, 24}));
  const uint32_t x = Add(b, Op::kSigmoid, {Gemm(b, b.Input(Floats({20, 30})), w)});
  ExpectKernels(2, b.Return(Add(b, Op::kNegate, {Floats({4, 5, 24})}, {x})), w);
}

TEST(CpuPlan, ATransposedOrSharedResultHasAKernelOfItsOwn) {
  ProgramBuilder transposed;
  const uint32_t a = transposed.Input(Floats({20, 30}));
  const uint32_t w = transposed.Input(Floats({30, 40}));
  const uint32_t x = Gemm(transposed, a, w);
  ExpectKernels(2, transposed.Return(Add(transposed, Op::kAbs, {Floats({40, 20}, {1, 40})}, {x})),
                w);
  ProgramBuilder shared;
  const uint32_t c = shared.Input(Floats({20, 30}));
  const uint32_t v = shared.Input(Floats({30, 40}));
  const uint32_t y = Gemm(shared, c, v);
  ExpectKernels(3, shared.Return(Add(shared, Op::kAbs, {y})).Return(Add(shared, Op::kNegate, {y})),
                v);
}

uint32_t Join(ProgramBuilder& b, const std::vector<uint32_t>& values, uint32_t axis) {
  std::vector<TensorDesc> tensors;
  for (const uint32_t value : values) tensors.push_back(b.tensor(value));
  return b.Add(DescOf(kJoinSchema, tensors, {{"axis", axis}}), {values.begin(), values.end()})[0];
}

// A convolution with a new filter of one element for each pair of channels.
uint32_t Convolve(ProgramBuilder& b, uint32_t from, uint32_t channels) {
  TensorDesc filter = b.tensor(from);
  filter.sizes = {channels, filter.sizes[1], 1, 1};
  const uint32_t weights = b.Input(filter);
  return b.Add(ConvolutionDesc{.input = b.tensor(from), .filter = filter, .bias = {}},
               {from, weights})[0];
}

// Of the joins of a program, which has `others` kernels besides them, `moving` move elements.
void ExpectMovingJoins(size_t moving, size_t others, const ProgramBuilder& builder) {
  const Program program = *Validate(builder.program());
  const std::vector<TensorBytes> inputs = RandomInputs(program, 1);
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  const auto expected = RunNodeByNode(*device, program, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const CpuPlan plan = MakeCpuPlan(FuseChains(program));
  EXPECT_EQ(static_cast<size_t>(
                std::count_if(plan.nodes.begin(), plan.nodes.end(),
                              [](const CpuNode& node) { return !node.work->phases().empty(); })),
            others + moving)
      << ToString(program);
  for (const uint32_t threads : {1, 2, 4}) {
    EXPECT_EQ(RunOn(program, inputs, threads), *expected) << ToString(program);
  }
}

TEST(CpuPlan, JoinedResultsAreWrittenInTheirPlaces) {
  for (const uint32_t batches : {1u, 2u}) {
    for (const bool returns_join : {false, true}) {
      ProgramBuilder b;
      const uint32_t input = b.Input(Floats({batches, 7, 5, 3}));
      // As in a dense block: everything so far is read, and joined with what comes of it.
      const uint32_t first = Join(b, {Convolve(b, input, 3), Convolve(b, input, 1)}, 1);
      const uint32_t second = Join(b, {first, Convolve(b, first, 2)}, 1);
      const uint32_t third = Join(b, {Convolve(b, second, 4), second}, 1);
      b.Return(Add(b, Op::kNegate, {first}));
      b.Return(returns_join ? third : Convolve(b, third, 2));
      const size_t moving = batches > 1 ? 3 : returns_join ? 1 : 0;
      ExpectMovingJoins(moving, returns_join ? 5 : 6, b);
    }
  }
  ProgramBuilder twice;
  const uint32_t x = Gemm(twice, twice.Input(Floats({6, 9})), twice.Input(Floats({9, 8})));
  const uint32_t both = Join(twice, {x, x}, 0);
  ExpectMovingJoins(1, 2, twice.Return(Gemm(twice, both, twice.Input(Floats({8, 3})))));
}

// Kernels fill the last word of their result with zeros, which would be the next part's.
TEST(CpuPlan, PartsOfAJoinDoNotShareAWord) {
  for (const bool odd_first : {false, true}) {
    ProgramBuilder b;
    const uint32_t even =
        Convolve(b, b.Input({.data_type = DataType::kFloat16, .sizes = {1, 7, 5, 3}}), 2);
    const uint32_t odd = Convolve(b, even, 3);  // 45 elements of two bytes
    const uint32_t joined = odd_first ? Join(b, {odd, even}, 1) : Join(b, {even, odd}, 1);
    ExpectMovingJoins(odd_first ? 1 : 0, 3, b.Return(Convolve(b, joined, 2)));
  }
}

TEST(CpuPlan, AStepOfWhichNothingIsLeftMovesNoBytes) {
  ProgramBuilder b;
  const uint32_t input = b.Input(Floats({1, 7, 5, 3}));
  const uint32_t joined = Join(b, {Convolve(b, input, 3), Convolve(b, input, 1)}, 1);
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  const auto compiled = device->Compile(*Validate(b.Return(Convolve(b, joined, 2)).program()));
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const ProgramReport report = (*compiled)->Report();
  ASSERT_EQ(report.steps.size(), 4u);
  EXPECT_TRUE(report.steps[2].phases.empty());
  EXPECT_EQ(report.steps[2].read_bytes + report.steps[2].written_bytes, 0u);
  EXPECT_GT(report.steps[3].read_bytes, 0u);
}

struct Convolution {
  std::vector<uint32_t> input;
  std::vector<uint32_t> filter;
  std::vector<uint32_t> strides = {1, 1};
  std::vector<uint32_t> padding = {0, 0};
  uint32_t groups = 1;
};

TEST(CpuPlan, AChainFollowsAConvolution) {
  for (const Convolution& c : {Convolution{{2, 5, 9, 11}, {14, 5, 3, 3}, {1, 1}, {1, 1}},
                               {{1, 64, 7, 7}, {130, 64, 3, 3}, {1, 1}, {1, 1}},
                               {{1, 48, 15, 14}, {20, 48, 3, 3}, {2, 2}, {1, 1}},
                               {{2, 33, 6, 6}, {9, 33, 1, 1}, {2, 2}},
                               {{1, 70, 13, 13}, {40, 70, 1, 1}},
                               {{2, 24, 10, 12}, {24, 1, 5, 5}, {1, 1}, {2, 2}, 24},
                               {{1, 24, 10, 12}, {24, 1, 3, 3}, {2, 2}, {1, 1}, 24},
                               {{1, 40, 60, 1}, {25, 40, 5, 1}},
                               {{1, 3, 40, 1}, {4, 3, 5, 1}, {2, 1}, {2, 0}},
                               {{1, 2, 1, 900}, {40, 2, 1, 400}, {1, 100}},
                               {{1, 8, 12, 12}, {12, 4, 3, 3}, {1, 1}, {1, 1}, 2},
                               // By tiles, for which tasks share what they read, or do not.
                               {{1, 20, 18, 15}, {70, 20, 3, 3}, {1, 1}, {1, 1}},
                               {{2, 17, 50, 41}, {19, 17, 3, 3}}}) {
    ProgramBuilder b;
    const uint32_t input = b.Input(Floats(c.input));
    const uint32_t filter = b.Input(Floats(c.filter));
    const uint32_t bias = b.Input(Floats({1, c.filter[0], 1, 1}));
    uint32_t x = b.Add(ConvolutionDesc{.input = b.tensor(input),
                                       .filter = b.tensor(filter),
                                       .bias = b.tensor(bias),
                                       .strides = c.strides,
                                       .start_padding = c.padding,
                                       .end_padding = c.padding,
                                       .group_count = c.groups},
                       {input, filter, bias})[0];
    const std::vector<uint32_t> sizes = b.tensor(x).sizes;
    const uint32_t slope = b.Input(Floats({c.filter[0]}));
    x = Add(b, Op::kParameterizedRelu, {b.tensor(x), Floats(sizes, {0, 1, 0, 0})}, {x, slope});
    ExpectKernels(1, b.Return(Add(b, Op::kHardSwish, {x})), filter);
  }
}

// Callers with little work wait for a task.
TEST(CpuPlan, LargeConvolutionsByTilesHaveManyTasks) {
  ProgramBuilder b;
  const ConvolutionDesc desc = {.input = Floats({1, 512, 56, 56}),
                                .filter = Floats({512, 512, 3, 3}),
                                .bias = {},
                                .start_padding = {1, 1},
                                .end_padding = {1, 1}};
  const uint32_t image = b.Input(desc.input);
  b.Return(b.Add(desc, {image, b.Input(desc.filter)})[0]);
  const CpuPlan plan = MakeCpuPlan(FuseChains(*Validate(b.program())));
  EXPECT_GE(plan.nodes[0].work->phases().back(), 8u);
}

// Weights in INT8 are scaled when the program is compiled.
TEST(CpuPlan, WhatIsComputedFromConstantsIsKept) {
  ProgramBuilder b;
  const uint32_t a = b.Input(Floats({20, 30}));
  const uint32_t weights = b.Input({DataType::kInt8, {30, 44}, {}});
  OperatorDesc cast = {
      .schema = &SchemaOf(Op::kCast), .inputs = {b.tensor(weights)}, .outputs = {Floats({30, 44})}};
  const uint32_t scale = b.Input(Floats({44}));
  const uint32_t numbers = b.Add(cast, {weights})[0];
  const uint32_t scaled =
      Add(b, Op::kMultiply, {b.tensor(numbers), Floats({30, 44}, {0, 1})}, {numbers, scale});
  const Program program = *Validate(b.Return(Gemm(b, a, scaled)).program());
  std::vector<TensorBytes> inputs = RandomInputs(program, 1);
  const std::vector<TensorBytes> expected = RunOn(program, inputs, 1);
  const Program kept = WithConstant(WithConstant(program, scale, inputs), weights, inputs);
  const CpuPlan plan = MakeCpuPlan(FuseChains(kept));
  ASSERT_EQ(plan.nodes.size(), 1u);
  EXPECT_THAT(ReportOf(FuseChains(kept), plan).steps[0].text, HasSubstr("gemm 20x30 30x44"));
  EXPECT_GE(plan.nodes[0].work->kept().at(0)->bytes(), 30u * 44 * sizeof(float));
  EXPECT_EQ(RunOn(kept, inputs, 2), expected);
  std::stop_source abandoned;
  abandoned.request_stop();
  EXPECT_EQ(CreateCpuDevice()->Compile(kept, abandoned.get_token()).status().code(),
            absl::StatusCode::kCancelled);
}

// A product with constant weights, and one with weights that are scaled first; a convolution.
Program OfBatch(uint32_t batch, std::vector<TensorBytes>& inputs) {
  ProgramBuilder b;
  const uint32_t x = b.Input(Floats({batch, 30}));
  const uint32_t weights = b.Input(Floats({30, 44}));
  const uint32_t product = Gemm(b, x, weights);
  const uint32_t others = b.Input(Floats({44, 40}));
  const uint32_t scale = b.Input(Floats({44, 40}));
  b.Return(Gemm(b, product, Add(b, Op::kMultiply, {others, scale})));
  // Rows of the filter that are multiples of 1 KiB apart are packed; others are read in place.
  const uint32_t image = b.Input(Floats({batch, 256, 12, 12}));
  const TensorDesc filter = Floats({24, 256, 1, 1});
  const uint32_t filters = b.Input(filter);
  b.Return(b.Add(ConvolutionDesc{.input = b.tensor(image), .filter = filter, .bias = {}},
                 {image, filters})[0]);
  Program program = *Validate(b.program());
  // The weights are the same for each batch.
  inputs = RandomInputs(program, 1);
  size_t input = 0;
  for (const uint32_t value : {x, weights, others, scale, image, filters}) {
    TensorBytes& bytes = inputs[input++];
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      const float number = static_cast<float>((i / 4 * 7 + value) % 13) / 8 - 0.7f;
      std::memcpy(bytes.data() + i, &number, sizeof number);
    }
  }
  for (const uint32_t value : {filters, scale, others, weights}) {
    program = WithConstant(program, value, inputs);
  }
  return program;
}

std::vector<const KeptFloats*> KeptBy(const CpuPlan& plan) {
  std::vector<const KeptFloats*> all;
  for (const CpuNode& node : plan.nodes) {
    for (const auto& kept : node.work->kept()) all.push_back(kept.get());
  }
  return all;
}

TEST(CpuPlan, ProgramsForOtherBatchesShareWhatTheyKeep) {
  KeptConstants kept;
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2, .max_inline_bytes = 0});
  std::vector<std::shared_ptr<const CompiledProgram>> compiled;
  {
    std::vector<TensorBytes> inputs;
    const CpuPlan two = MakeCpuPlan(FuseChains(OfBatch(2, inputs)), kept);
    const std::vector<const KeptFloats*> first = KeptBy(two);
    EXPECT_EQ(first.size(), 3u);
    for (const uint32_t batch : {3u, 8u, 64u}) {
      EXPECT_EQ(KeptBy(MakeCpuPlan(FuseChains(OfBatch(batch, inputs)), kept)), first) << batch;
      EXPECT_EQ(kept.size(), 3u);
    }
  }
  EXPECT_EQ(kept.size(), 0u);  // released with the last plan
  // Each device packs for itself; one packs for all batches, whose other constants are their own
  // here.
  std::set<const void*> common;
  for (const uint32_t batch : {2u, 3u, 8u, 64u}) {
    std::vector<TensorBytes> inputs;
    const Program program = FuseChains(OfBatch(batch, inputs));
    compiled.push_back(*device->Compile(program));
    EXPECT_EQ(RunCompiled(*device, compiled.back(), inputs), RunOn(program, inputs, 1)) << batch;
    std::set<const void*> shared;
    for (const SharedBytes& each : compiled.back()->cost().shared) {
      if (compiled.size() == 1 || common.contains(each.memory)) shared.insert(each.memory);
    }
    common = shared;
  }
  EXPECT_EQ(common.size(), 3u);
}

TEST(CpuPlan, ConvolutionsOfImagesOfAnySizeShareTheirFilters) {
  KeptConstants kept;
  std::vector<CpuPlan> plans;
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2, .max_inline_bytes = 0});
  std::vector<std::shared_ptr<const CompiledProgram>> compiled;
  TensorBytes weights;
  for (const std::vector<uint32_t>& sizes :
       {std::vector<uint32_t>{1, 20, 60, 60}, {1, 20, 16, 16}, {3, 20, 20, 33}}) {
    ProgramBuilder b;
    const uint32_t image = b.Input(Floats(sizes));
    const TensorDesc filter = Floats({70, 20, 3, 3});
    const uint32_t filters = b.Input(filter);
    const ConvolutionDesc desc = {.input = b.tensor(image), .filter = filter, .bias = {}};
    const Program program = *Validate(b.Return(b.Add(desc, {image, filters})[0]).program());
    std::vector<TensorBytes> inputs = RandomInputs(program, 1);
    if (weights.empty()) weights = inputs[1];
    inputs[1] = weights;
    const std::vector<TensorBytes> expected = RunOn(program, inputs, 1);
    const Program of_size = WithConstant(program, filters, inputs);
    plans.push_back(MakeCpuPlan(of_size, kept));
    EXPECT_EQ(KeptBy(plans.back()), KeptBy(plans.front()));
    compiled.push_back(*device->Compile(of_size));
    EXPECT_EQ(RunCompiled(*device, compiled.back(), inputs), expected);
  }
  EXPECT_EQ(kept.size(), 1u);
}

// Threads that need the same numbers have the same ones, also while the last program that has them
// ends.
TEST(KeptConstants, AreSharedByThreadsAndReleasedWithTheLast) {
  KeptConstants kept;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&kept] {
      for (int i = 0; i < 2000; ++i) {
        const auto floats = kept.Get({{"a"}, "form"}, 64, [](float* to) {
          std::fill(to, to + 64, 7.0f);
          return true;
        });
        EXPECT_EQ(std::count(floats->data(), floats->data() + 64, 7.0f), 64);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kept.size(), 0u);
}

TEST(KeptConstants, HaveNothingOfAbandonedWork) {
  KeptConstants kept;
  int calls = 0;
  const auto get = [&](bool ends) {
    return kept.Get({{"a"}, "form"}, 1, [&](float*) {
      ++calls;
      return ends;
    });
  };
  EXPECT_EQ(get(false), nullptr);
  EXPECT_EQ(kept.size(), 0u);
  EXPECT_NE(get(true), nullptr);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace opmill
