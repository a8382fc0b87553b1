// max_pooling, average_pooling and lp_pooling in every type on every device, against the reference;
// and their refusals.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/window/pooling_desc.h"
#include "tests/conformance/reference_run.h"
#include "tests/support/programs.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using Numbers = std::vector<uint32_t>;

struct Windows {
  Numbers sizes;
  Numbers window_size;
  Numbers strides = {1};
  Numbers start_padding = {0};
  Numbers end_padding = {0};
  Numbers dilations = {1};
  Numbers input_strides = {};
  bool has_gaps = false;  // between the elements of the outputs

  std::vector<NamedValue> attributes() const {
    return {{"window_size", window_size},
            {"strides", strides},
            {"start_padding", start_padding},
            {"end_padding", end_padding},
            {"dilations", dilations}};
  }
};

const Windows kWindows[] = {
    {.sizes = {2, 3, 7, 9}, .window_size = {3, 3}},
    {.sizes = {1, 2, 8, 13},
     .window_size = {2, 3},
     .strides = {2, 2},
     .start_padding = {1, 1},
     .end_padding = {0, 1}},
    {.sizes = {1, 3, 4, 5, 6},
     .window_size = {2, 3, 2},
     .strides = {1, 2, 1},
     .start_padding = {1, 0, 1},
     .end_padding = {0, 1, 1},
     .dilations = {1, 1, 2}},
    {.sizes = {1, 1, 17, 19}, .window_size = {3, 2}, .start_padding = {2, 3}, .dilations = {2, 3}},
    // Channels last, and gaps in the outputs.
    {.sizes = {2, 5, 6, 7},
     .window_size = {2, 2},
     .strides = {2, 1},
     .input_strides = {210, 1, 35, 5},
     .has_gaps = true},
    {.sizes = {3, 2, 5, 11}, .window_size = {5, 11}},
    // More rows than are joined at a time.
    {.sizes = {1, 2, 21, 18}, .window_size = {19, 2}, .start_padding = {1, 1}},
    // Windows that lie in the padding.
    {.sizes = {1, 1, 2, 3}, .window_size = {1, 2}, .start_padding = {2, 3}, .end_padding = {1, 4}},
    // Rows longer than what the processor computes at a time.
    {.sizes = {1, 1, 3, 3000}, .window_size = {2, 5}, .strides = {1, 3}, .start_padding = {0, 2}},
    {.sizes = {1, 1, 2, 2600}, .window_size = {1, 3}, .end_padding = {0, 2}, .dilations = {1, 700}},
    {.sizes = {1, 2, 3, 2100},
     .window_size = {3, 2},
     .strides = {1, 2},
     .input_strides = {0, 2, 4200, 4}},
};

OperatorDesc DescOf(const OperatorSchema& schema, const Windows& windows, DataType type,
                    std::vector<NamedValue> more = {}, DataType index = DataType::kUint32) {
  std::vector<NamedValue> attributes = windows.attributes();
  attributes.insert(attributes.end(), more.begin(), more.end());
  OperatorDesc desc = ValidDesc(schema, {{type, windows.sizes, windows.input_strides}}, attributes);
  if (desc.outputs.size() > 1) desc.outputs[1]->data_type = index;
  if (!windows.has_gaps) return desc;
  for (auto& output : desc.outputs) {
    std::vector<uint32_t> wider = output->sizes;
    for (uint32_t& size : wider) ++size;
    output->strides = PackedStrides(wider);
  }
  return Validate(desc).value();
}

// The mean of the magnitudes in each window.
Bound AverageBound(const OperatorDesc& desc, TensorValues inputs) {
  const DataType type = desc.inputs[0].data_type;
  for (size_t at = ElementBytes(type) - 1; at < inputs[0].size(); at += ElementBytes(type)) {
    inputs[0][at] &= std::byte{0x7F};
  }
  const TensorValues magnitudes = ReferenceResults(desc, inputs);
  double roundings = 4;
  const std::vector<WindowDim> windows = WindowsOf(desc);
  double column = 1;
  for (size_t i = 0; i + 1 < windows.size(); ++i) column *= windows[i].window;
  roundings += column + windows.back().window;
  return [magnitudes, roundings, output = *desc.outputs[0]](const Coordinate& at, double) {
    return roundings * 0x1p-23 * ToDouble(output.data_type, Reader(output, magnitudes[0]).At(at));
  };
}

Bound LpBound(const OperatorDesc& desc) {
  double elements = 32;
  for (const WindowDim& dim : WindowsOf(desc)) elements += dim.window;
  return [elements](const Coordinate&, double want) { return elements * 0x1p-23 * want; };
}

class PoolingTest : public DeviceTest {
 protected:
  // Where kernels are compiled, a sample: each of the windows, and each of the types.
  bool Skips(const Windows& windows, uint32_t variant) {
    const DeviceKind kind = device().info().kind;
    if (kind == DeviceKind::kReference || kind == DeviceKind::kCpu) return false;
    return (static_cast<uint32_t>(&windows - kWindows) + variant) % 5 != 0;
  }
  // Plans for views of 0 elements are the device's own.
  void Check(const OperatorDesc& desc, ValuePattern values, const Bound& bound = nullptr,
             uint64_t view_elements = 0) {
    const TensorValues inputs = ValuesFor(desc, values, 7);
    Check(desc, inputs, bound, view_elements);
  }
  void Check(const OperatorDesc& desc, const TensorValues& inputs, const Bound& bound,
             uint64_t view_elements) {
    const auto outputs = view_elements == 0 ? RunValidated(device(), desc, inputs)
                                            : RunWithViews(device(), desc, inputs, view_elements);
    ASSERT_TRUE(outputs.ok()) << outputs.status() << ToString(desc);
    EXPECT_EQ(FindDifference(desc, inputs, *outputs, bound), "") << ToString(desc);
  }
};

TEST_P(PoolingTest, MaximaAreExact) {
  for (const Windows& windows : kWindows) {
    for (const DataType type : kAllDataTypes) {
      if (Skips(windows, static_cast<uint32_t>(type))) continue;
      const OperatorDesc desc = DescOf(kMaxPoolingSchema, windows, type);
      Check(desc, ValuePattern::kRandomBits);
      Check(desc, ValuePattern::kSpecials);
    }
  }
}

TEST_P(PoolingTest, IndicesAreThoseOfTheFirstMaxima) {
  for (const Windows& windows : kWindows) {
    for (const DataType type : kAllDataTypes) {
      for (const DataType index : {DataType::kUint32, DataType::kUint64}) {
        if (Skips(windows, static_cast<uint32_t>(type) + (index == DataType::kUint64))) continue;
        const OperatorDesc desc = DescOf(kMaxPoolingWithIndicesSchema, windows, type, {}, index);
        Check(desc, ValuePattern::kTies);
        Check(desc, ValuePattern::kSpecials);
      }
    }
  }
}

TEST_P(PoolingTest, MeansAreWithinTheirBound) {
  for (const Windows& windows : kWindows) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const uint32_t include_padding : {0u, 1u}) {
        const OperatorDesc desc =
            DescOf(kAveragePoolingSchema, windows, type, {{"include_padding", include_padding}});
        for (const ValuePattern values : {ValuePattern::kNumbers, ValuePattern::kRareNans,
                                          ValuePattern::kZeros, ValuePattern::kRareInfinities}) {
          const TensorValues inputs = ValuesFor(desc, values, 3);
          Check(desc, inputs, AverageBound(desc, inputs), 0);
        }
      }
    }
  }
}

TEST_P(PoolingTest, NormsAreWithinTheirBound) {
  for (const Windows& windows : kWindows) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const uint32_t p : {1u, 2u, 3u}) {
        if (Skips(windows, p + static_cast<uint32_t>(type))) continue;
        const OperatorDesc desc = DescOf(kLpPoolingSchema, windows, type, {{"p", p}});
        Check(desc, ValuePattern::kNumbers, LpBound(desc));
        Check(desc, ValuePattern::kRareNans, LpBound(desc));
      }
    }
  }
}

TEST_P(PoolingTest, TensorsLargerThanAViewAreCut) {
  for (const Windows& windows : kWindows) {
    const OperatorDesc desc = DescOf(kMaxPoolingWithIndicesSchema, windows, DataType::kInt8);
    Check(desc, ValuePattern::kRandomBits, nullptr, 1024);
  }
}

INSTANTIATE_TEST_SUITE_P(On, PoolingTest, ::testing::ValuesIn(TestDevices()));

std::vector<double> Results(const OperatorDesc& desc, const std::vector<double>& elements,
                            size_t output = 0) {
  const TensorValues results = ReferenceResults(desc, {BytesOfNumbers(desc.inputs[0], elements)});
  return NumbersIn(*desc.outputs[output], results[output]);
}

TEST(Pooling, GivesTheValuesOfThePage) {
  const TensorDesc input = {DataType::kFloat32, {1, 1, 2, 4}, {}};
  const std::vector<double> elements = {3, 5, 7, 1, 9, 4, 2, 8};
  const OperatorDesc desc =
      ValidDesc(kMaxPoolingWithIndicesSchema, {input}, {{"window_size", Numbers{1, 3}}});
  EXPECT_THAT(Results(desc, elements), ElementsAre(7, 7, 9, 8));
  EXPECT_THAT(Results(desc, elements, 1), ElementsAre(2, 2, 4, 7));
  const std::vector<NamedValue> padded = {{"window_size", Numbers{1, 2}},
                                          {"start_padding", Numbers{0, 1}}};
  const TensorDesc row = {DataType::kFloat32, {1, 1, 1, 3}, {}};
  EXPECT_THAT(Results(ValidDesc(kAveragePoolingSchema, {row}, padded), {2, 4, 8}),
              ElementsAre(2, 3, 6));
  std::vector<NamedValue> included = padded;
  included.push_back({"include_padding", 1u});
  EXPECT_THAT(Results(ValidDesc(kAveragePoolingSchema, {row}, included), {2, 4, 8}),
              ElementsAre(1, 3, 6));
  EXPECT_THAT(
      Results(ValidDesc(kLpPoolingSchema, {row}, {{"window_size", Numbers{1, 2}}}), {3, -4, 0}),
      ElementsAre(5, 4));
}

TEST(Pooling, OfAWindowWithoutElements) {
  const std::vector<NamedValue> outside = {{"window_size", Numbers{1}},
                                           {"end_padding", Numbers{0, 1}}};
  const auto desc = [&](const OperatorSchema& schema, DataType type) {
    return ValidDesc(schema, {{type, {1, 1, 1, 1}, {}}}, outside);
  };
  const OperatorDesc floats = desc(kMaxPoolingWithIndicesSchema, DataType::kFloat32);
  EXPECT_THAT(Results(floats, {5}), ElementsAre(5, -INFINITY));
  EXPECT_THAT(Results(floats, {5}, 1), ElementsAre(0, 4294967295.0));
  EXPECT_THAT(Results(desc(kMaxPoolingSchema, DataType::kInt8), {5}), ElementsAre(5, -128));
  EXPECT_THAT(Results(desc(kAveragePoolingSchema, DataType::kFloat16), {5}), ElementsAre(5, 0));
}

std::string RefusalOf(const OperatorSchema& schema, const Windows& windows,
                      FeatureLevel level = kNewestFeatureLevel) {
  OperatorDesc desc = {.schema = &schema,
                       .inputs = {{DataType::kFloat32, windows.sizes, {}}},
                       .outputs = std::vector<std::optional<TensorDesc>>(schema.outputs.size())};
  for (const Numbers& list : {windows.strides, windows.window_size, windows.start_padding,
                              windows.end_padding, windows.dilations}) {
    desc.attributes.emplace_back(list);
  }
  if (schema.attributes.size() > desc.attributes.size()) desc.attributes.emplace_back(1u);
  const absl::Status status = Validate(desc, level).status();
  return absl::StrCat(FieldOf(status).value_or("no field"), ": ", status.message());
}

TEST(Pooling, RefusesWhatIsNotAWindow) {
  const Numbers sizes = {1, 1, 4, 4};
  EXPECT_EQ(RefusalOf(kMaxPoolingSchema, {.sizes = {4, 4, 4}, .window_size = {2}}),
            "input.sizes: max_pooling takes 4 to 5 dimensions, but input.sizes has 3.");
  EXPECT_EQ(RefusalOf(kMaxPoolingSchema, {.sizes = sizes, .window_size = {2, 2, 2}}),
            "window_size: window_size has 3 numbers, but input has 2 spatial dimensions.");
  EXPECT_EQ(RefusalOf(kMaxPoolingSchema, {.sizes = sizes, .window_size = {2, 0}}),
            "window_size[1]: window_size[1] is 0, but must be at least 1.");
  EXPECT_EQ(RefusalOf(kAveragePoolingSchema, {.sizes = sizes, .window_size = {2}, .strides = {0}}),
            "strides[0]: strides[0] is 0, but must be at least 1.");
  EXPECT_EQ(
      RefusalOf(kLpPoolingSchema, {.sizes = sizes, .window_size = {2, 3}, .dilations = {1, 2}}),
      "window_size: The window spans 5 elements of input.sizes[3], which has 4 with its "
      "padding.");
  EXPECT_EQ(RefusalOf(kMaxPoolingSchema,
                      {.sizes = sizes, .window_size = {1}, .start_padding = {4294967295}}),
            "start_padding: start_padding and end_padding make 4294967299 elements of "
            "input.sizes[2]; the limit is 4294967295.");
  EXPECT_EQ(RefusalOf(kMaxPoolingSchema,
                      {.sizes = sizes, .window_size = {70000}, .start_padding = {70000}}),
            "window_size: window_size has more than 4294967295 elements.");
  EXPECT_EQ(RefusalOf(kAveragePoolingSchema, {.sizes = sizes, .window_size = {2}, .dilations = {2}},
                      FeatureLevel::k5_0),
            "dilations: At feature level 5.0 average_pooling takes dilations of 1, but dilations "
            "is [2]; feature level 6.2 allows this request.");
}

TEST(Pooling, RefusesWindowsThatAreTooLargeForALane) {
  const OperatorDesc desc =
      ValidDesc(kAveragePoolingSchema, {{DataType::kFloat32, {1, 1, 2048, 1024}, {}}},
                {{"window_size", Numbers{2048, 1024}}});
  EXPECT_EQ(MakePlan(desc, {}).status().message(),
            "A window has 2097152 elements; the limit of a GPU is 1048576. reduce has no such "
            "limit.");
}

}  // namespace
}  // namespace opmill
