#include "kernels/onnx/canonical_form.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace opmill::onnx {
namespace {

// An attribute of `op`, or of every operator whose name starts with it, that has become an input.
struct OldAttribute {
  absl::string_view op;
  absl::string_view attribute;
  size_t input;
};

constexpr OldAttribute kOldAttributes[] = {
    {"Clip", "min", 1},       {"Clip", "max", 2},        {"Dropout", "ratio", 1},
    {"Pad", "pads", 1},       {"Pad", "value", 2},       {"Reduce", "axes", 1},
    {"Slice", "starts", 1},   {"Slice", "ends", 2},      {"Slice", "axes", 3},
    {"Split", "split", 1},    {"Squeeze", "axes", 1},    {"TopK", "k", 1},
    {"Unsqueeze", "axes", 1}, {"Upsample", "scales", 1},
};

struct RenamedAttribute {
  absl::string_view op, name, new_name;  // the new one is DirectML's
};
constexpr RenamedAttribute kRenamedAttributes[] = {{"Shrink", "lambd", "threshold"},
                                                   {"Swish", "alpha", "sigmoid_input_scale"}};

template <typename T>
Tensor MakeTensor(ElementType type, Sizes sizes, const T* elements, size_t count) {
  return {{type, std::move(sizes)},
          std::make_shared<const std::string>(reinterpret_cast<const char*>(elements),
                                              count * sizeof(T))};
}

std::optional<Tensor> TensorOf(const Attribute& attribute) {
  if (const auto* const i = std::get_if<int64_t>(&attribute)) {
    return MakeTensor(ElementType::kInt64, {1}, i, 1);
  }
  if (const auto* const f = std::get_if<float>(&attribute)) {
    return MakeTensor(ElementType::kFloat, {}, f, 1);
  }
  if (const auto* const ints = std::get_if<std::vector<int64_t>>(&attribute)) {
    return MakeTensor(ElementType::kInt64, {static_cast<int64_t>(ints->size())}, ints->data(),
                      ints->size());
  }
  if (const auto* const floats = std::get_if<std::vector<float>>(&attribute)) {
    return MakeTensor(ElementType::kFloat, {static_cast<int64_t>(floats->size())}, floats->data(),
                      floats->size());
  }
  return std::nullopt;
}

// What has no meaning, or only one, in opset 7. Of operators that broadcast along an `axis`, that
// attribute stays, and is refused.
void DropOldAttributes(Node& node) {
  node.attributes.erase("broadcast");
  node.attributes.erase("consumed_inputs");
  if (node.op != "BatchNormalization" && node.op != "Dropout") return;
  const auto is_test = node.attributes.extract("is_test");
  const auto* const value = is_test.empty() ? nullptr : std::get_if<int64_t>(&is_test.mapped());
  const bool computes = value != nullptr && *value == 1;
  if (!computes && node.op == "BatchNormalization") node.attributes["training_mode"] = int64_t{1};
}

}  // namespace

void MakeCanonical(Node& node,
                   const std::function<ValueId(absl::string_view, Tensor)>& add_constant) {
  for (const OldAttribute& old : kOldAttributes) {
    const auto found = node.attributes.find(std::string(old.attribute));
    const bool is_its = old.op == "Reduce" ? absl::StartsWith(node.op, old.op) : node.op == old.op;
    if (!is_its || found == node.attributes.end()) continue;
    std::optional<Tensor> tensor = TensorOf(found->second);
    // A wrong kind remains, and is refused like an unknown attribute.
    if (!tensor.has_value() ||
        (node.inputs.size() > old.input && node.inputs[old.input] != kNoValue)) {
      continue;
    }
    if (node.inputs.size() <= old.input) node.inputs.resize(old.input + 1, kNoValue);
    node.inputs[old.input] = add_constant(old.attribute, *std::move(tensor));
    node.attributes.erase(found);
  }
  for (const RenamedAttribute& renamed : kRenamedAttributes) {
    if (node.op != renamed.op) continue;
    auto found = node.attributes.extract(std::string(renamed.name));
    if (found.empty()) continue;
    found.key() = std::string(renamed.new_name);
    node.attributes.insert(std::move(found));
  }
  if (node.op == "Upsample" || (node.op == "Resize" && node.opset < 11)) {
    node.op = "Resize";
    if (node.inputs.size() == 2) node.inputs.insert(node.inputs.begin() + 1, kNoValue);  // roi
    node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
    node.attributes["nearest_mode"] = std::string("floor");
  }
  if (node.op == "Split" && (node.inputs.size() < 2 || node.inputs[1] == kNoValue)) {
    node.attributes.try_emplace("num_outputs", static_cast<int64_t>(node.outputs.size()));
  }
  if (node.opset < 7) DropOldAttributes(node);
  if (node.op == "Scatter") node.op = "ScatterElements";
  // Until opset 12 they worked on all dimensions from `axis` on.
  if (node.opset < 13 &&
      (node.op == "Softmax" || node.op == "LogSoftmax" || node.op == "Hardmax")) {
    node.attributes.try_emplace("axis", int64_t{1});
    node.attributes["is_flattened"] = int64_t{1};
  }
}

}  // namespace opmill::onnx
