#include "tests/gpu_report/hot_plans.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/elementwise/element_wise_chain.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "kernels/operators/window/pooling_desc.h"

namespace opmill {
namespace {

struct Shape {
  std::vector<uint32_t> sizes;
  uint32_t axis = 0;
};

const Shape kShapes[] = {
    {{8192, 4096}, 1},  {{8192, 1024}, 1}, {{1048576, 64}, 1},
    {{1024, 50257}, 1}, {{8192, 4096}, 0}, {{8192, 8192}, 0},
    {{64, 1048576}, 0}, {{67108864}, 0},   {{64, 1024, 1024}, 1},
};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt8,
                               DataType::kInt64};
constexpr ReduceFunction kFunctions[] = {ReduceFunction::kSum, ReduceFunction::kMax,
                                         ReduceFunction::kLogSumExp, ReduceFunction::kL2};

class Collector {
 public:
  explicit Collector(uint32_t compute_units)
      : options_(PlanOptionsFor(SizeOf(DeviceKind::kHardware, compute_units, 0))) {}

  // Descriptors that the operator does not allow are left out: hardmax of integers.
  void Add(const std::string& what, const Shape& shape, const OperatorDesc& desc) {
    const absl::StatusOr<OperatorDesc> validated = Validate(desc);
    if (!validated.ok()) return;
    const std::string title = absl::StrCat(what, " ", ToString(desc.inputs[0].data_type), " [",
                                           absl::StrJoin(shape.sizes, ","), "] over ", shape.axis);
    AddPlan(title, *validated);
  }

  void AddPlan(const std::string& title, const OperatorDesc& validated,
               uint64_t multiplications = 0) {
    absl::StatusOr<OperatorPlan> plan = MakePlan(validated, options_);
    if (!plan.ok()) throw std::runtime_error(std::string(plan.status().message()));
    plans_.push_back({title, *std::move(plan), multiplications});
  }
  std::vector<TitledPlan> Take() { return std::move(plans_); }

 private:
  const PlanOptions options_;
  std::vector<TitledPlan> plans_;
};

void AddOperators(DataType type, const Shape& shape, Collector& collector) {
  const TensorDesc input = {type, shape.sizes, {}};
  for (const ReduceFunction function : kFunctions) {
    collector.Add(absl::AsciiStrToLower(ToString(function)), shape,
                  ReduceDesc{function, input, std::nullopt, {shape.axis}});
  }
  collector.Add("argmax", shape, ArgReduceDesc{Extreme::kMax, input, std::nullopt, {shape.axis}});
  collector.Add("hardmax", shape, HardmaxDesc{input, std::nullopt, {shape.axis}});
  for (const uint32_t k : {10u, 100u, 1000u}) {
    collector.Add(
        absl::StrCat("top_k k=", k), shape,
        TopKDesc{input, std::nullopt, std::nullopt, shape.axis, k, AxisDirection::kDecreasing});
  }
}

// Operators with little and with much code, and a chain of ten.
void AddElementWise(Collector& collector) {
  using enum ElementWiseOp;
  const TensorDesc tensor = {DataType::kFloat32, {67108864}, {}};
  for (const ElementWiseOp op : {kAdd, kSigmoid, kGelu, kPow, kAtanYx}) {
    OperatorDesc desc = {.schema = &SchemaOf(op), .outputs = {tensor}};
    desc.inputs.assign(desc.schema->inputs.size(), tensor);
    collector.AddPlan(absl::StrCat(desc.schema->name, " FLOAT32 [67108864]"), desc);
  }
  Chain chain = {.inputs = {tensor, tensor}, .output = tensor};
  for (uint32_t i = 0; i < 10; ++i) {
    const ElementWiseOp op = i % 5 == 4 ? kTanh : i % 2 == 0 ? kAdd : kMultiply;
    const uint32_t value = i == 0 ? 0 : i + 1;
    chain.steps.push_back({.op = op, .operands = {value}});
    if (op != kTanh) chain.steps.back().operands.push_back(1);
  }
  collector.AddPlan("chain of ten FLOAT32 [67108864]", DescribeChain(chain).value());
}

void AddPooling(Collector& collector) {
  const std::vector<WindowDim> windows(2, {.stride = 2, .window = 3, .start_padding = 1});
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const TensorDesc input = {type, {64, 64, 112, 112}, {}};
    OperatorDesc desc = DescribeAveragePooling(input, {type, {64, 64, 56, 56}, {}}, windows, false);
    collector.AddPlan(absl::StrCat("average_pooling ", ToString(type)), desc);
    desc.attributes.pop_back();
    desc.schema = &kMaxPoolingSchema;
    collector.AddPlan(absl::StrCat("max_pooling ", ToString(type)), desc);
    desc.schema = &kMaxPoolingWithIndicesSchema;
    desc.outputs.push_back(TensorDesc{DataType::kUint32, {64, 64, 56, 56}, {}});
    collector.AddPlan(absl::StrCat("max_pooling_with_indices ", ToString(type)), desc);
  }
}

// Large and small tiles, and a result for each lane; the few results of 16 rows and of 1 divide K.
void AddMatrix(Collector& collector) {
  const auto add = [&](const std::string& title, uint64_t multiplications,
                       const OperatorDesc& desc) {
    collector.AddPlan(title, Validate(desc).value(), multiplications);
  };
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const auto tensor = [&](std::vector<uint32_t> sizes) {
      return TensorDesc{type, std::move(sizes), {}};
    };
    for (const uint32_t size : {4096u, 128u, 16u, 1u}) {
      add(absl::StrCat("gemm ", ToString(type), " ", size, " rows"), uint64_t{size} * 1024 * 4096,
          GemmDesc{.a = tensor({size, 1024}), .b = tensor({1024, 4096})});
    }
    for (const uint32_t channels : {256u, 32u, 1u}) {
      // The output has 158 x 158 positions, each with 3 x 3 taps.
      add(absl::StrCat("convolution ", ToString(type), " to ", channels, " channels"),
          uint64_t{8} * 158 * 158 * channels * 64 * 3 * 3,
          ConvolutionDesc{.input = tensor({8, 64, 160, 160}),
                          .filter = tensor({channels, 64, 3, 3}),
                          .bias = tensor({1, channels, 1, 1})});
    }
    // Each element of the input meets the 2 x 2 taps of 256 channels.
    add(absl::StrCat("transposed convolution ", ToString(type)),
        uint64_t{8} * 64 * 160 * 160 * 256 * 2 * 2,
        ConvolutionDesc{.input = tensor({8, 64, 160, 160}),
                        .filter = tensor({64, 256, 2, 2}),
                        .direction = ConvolutionDirection::kBackward,
                        .strides = {2, 2}});
  }
}

// "8192,64". Throws std::invalid_argument.
std::vector<uint32_t> ParseNumbers(const std::string& text) {
  std::vector<uint32_t> numbers;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (const std::string& word : words) numbers.push_back(std::stoul(word));
  return numbers;
}

OperatorDesc DescribeMeasured(const std::string& name, const TensorDesc& input,
                              const std::vector<uint32_t>& axes, uint32_t k) {
  if (name == "argmin") return ArgReduceDesc{Extreme::kMin, input, std::nullopt, axes};
  if (name == "hardmax") return HardmaxDesc{input, std::nullopt, axes};
  if (name == "top_k") return TopKDesc{.input = input, .axis = axes[0], .k = k};
  for (const ReduceFunction function : kFunctions) {
    if (absl::AsciiStrToLower(ToString(function)) == name) {
      return ReduceDesc{function, input, std::nullopt, axes};
    }
  }
  throw std::runtime_error(absl::StrCat("No operator of a measured row: ", name));
}

}  // namespace

std::vector<TitledPlan> MeasuredPlans(uint32_t compute_units, std::istream& rows) {
  Collector collector(compute_units);
  std::string name, type, sizes, axes, milliseconds;
  for (uint32_t k = 0; rows >> name >> type >> sizes >> axes >> k >> milliseconds;) {
    const DataType* const data_type =
        std::ranges::find_if(kTypes, [&](DataType each) { return ToString(each) == type; });
    if (data_type == std::end(kTypes)) {
      throw std::runtime_error(absl::StrCat("No type of a measured row: ", type));
    }
    const TensorDesc input = {.data_type = *data_type, .sizes = ParseNumbers(sizes)};
    collector.AddPlan(absl::StrJoin({name, type, sizes, axes, std::to_string(k)}, " "),
                      Validate(DescribeMeasured(name, input, ParseNumbers(axes), k)).value());
  }
  return collector.Take();
}

std::vector<TitledPlan> HotPlans(uint32_t compute_units) {
  Collector collector(compute_units);
  for (const DataType type : kTypes) {
    for (const Shape& shape : kShapes) AddOperators(type, shape, collector);
  }
  AddElementWise(collector);
  AddPooling(collector);
  AddMatrix(collector);
  return collector.Take();
}

}  // namespace opmill
