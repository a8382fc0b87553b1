#include "client/model_call.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

v1::ModelInfo Layer() {
  v1::ModelInfo model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: "layer"
         inputs { name: "rate" data_type: DATA_TYPE_INT64 needs_value: true }
         inputs { name: "x" data_type: DATA_TYPE_FLOAT32 sizes: -1 sizes: 2 })",
      &model));
  return model;
}

template <typename T>
NamedInput InputOf(const std::string& name, v1::DataType type, const std::vector<uint32_t>& sizes,
                   const std::vector<T>& elements) {
  NamedInput input = {.name = name};
  input.desc.set_data_type(type);
  input.desc.mutable_sizes()->Add(sizes.begin(), sizes.end());
  const auto kept = std::make_shared<std::vector<T>>(elements);
  input.bytes = {reinterpret_cast<const std::byte*>(kept->data()), kept->size() * sizeof(T), kept};
  return input;
}

NamedInput X(const std::vector<uint32_t>& sizes = {2, 2}) {
  return InputOf<float>("x", v1::DATA_TYPE_FLOAT32, sizes, {1, 2, 3, 4});
}

NamedInput Rate() { return InputOf<int64_t>("rate", v1::DATA_TYPE_INT64, {1}, {16000}); }

std::vector<float> FloatsIn(const InputBytes& bytes) {
  std::vector<float> floats(bytes.size / sizeof(float));
  std::memcpy(floats.data(), bytes.data, bytes.size);
  return floats;
}

TEST(DescribeCall, PutsValuesLastAndIntoTheMessage) {
  const absl::StatusOr<ModelCall> call = DescribeCall(Layer(), "3", {Rate(), X()});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->desc.name(), "layer");
  EXPECT_EQ(call->desc.version(), "3");
  ASSERT_EQ(call->desc.inputs_size(), 2);
  EXPECT_EQ(call->desc.inputs(0).name(), "x");
  EXPECT_EQ(call->desc.inputs(0).value(), "");
  EXPECT_EQ(call->desc.inputs(1).value().size(), sizeof(int64_t));
  EXPECT_EQ(call->desc.inputs(1).tensor().sizes_size(), 0);
  ASSERT_EQ(call->inputs.size(), 1u);
  EXPECT_EQ(FloatsIn(call->inputs[0]), (std::vector<float>{1, 2, 3, 4}));
}

TEST(DescribeCall, PacksTensorsWithStrides) {
  NamedInput x = X();
  for (const uint32_t stride : {1, 2}) x.desc.add_strides(stride);
  const absl::StatusOr<ModelCall> call = DescribeCall(Layer(), "", {std::move(x), Rate()});
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->desc.inputs(0).tensor().strides_size(), 0);
  EXPECT_EQ(FloatsIn(call->inputs[0]), (std::vector<float>{1, 3, 2, 4}));
}

TEST(DescribeCall, RefusesWithASentence) {
  const auto refusal = [](std::vector<NamedInput> inputs) {
    return std::string(DescribeCall(Layer(), "", std::move(inputs)).status().message());
  };
  EXPECT_EQ(refusal({X()}), "The input rate is missing: layer takes rate, x.");
  EXPECT_EQ(refusal({X(), Rate(), X()}), "The input x is given twice.");
  NamedInput typo = Rate();
  typo.name = "rote";
  EXPECT_EQ(refusal({X(), std::move(typo)}),
            "\"rote\" is no input: layer takes rate, x. Did you mean rate?");
  EXPECT_EQ(refusal({X({4, 1}), Rate()}), "The input x of layer has the shape [-1,2], not [4,1].");
  NamedInput wide = X();
  wide.desc.set_data_type(v1::DATA_TYPE_INT32);
  EXPECT_EQ(refusal({std::move(wide), Rate()}), "The input x of layer is float32, not int32.");
}

}  // namespace
}  // namespace opmill
