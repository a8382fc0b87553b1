#include "kernels/onnx/lowering.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/descriptor/attribute_text.h"
#include "kernels/descriptor/broadcast.h"
#include "kernels/descriptor/validate.h"
#include "kernels/dims/dims.h"
#include "kernels/operators/operator_list.h"

namespace opmill::onnx {

std::vector<uint32_t> DescSizes(const Sizes& sizes) {
  if (sizes.empty()) return {1};
  return std::vector<uint32_t>(sizes.begin(), sizes.end());
}

TensorDesc DescOf(const TensorType& type) {
  return {.data_type = DataTypeOf(type.element), .sizes = DescSizes(type.sizes)};
}

View Broadcast(View view, const std::vector<uint32_t>& sizes) {
  if (view.tensor.sizes == sizes) return view;
  BroadcastTo(sizes, view.tensor);
  if (IsPacked(view.tensor)) view.tensor.strides.clear();
  return view;
}

std::optional<std::vector<uint32_t>> ReshapedStrides(const TensorDesc& tensor,
                                                     const std::vector<uint32_t>& sizes) {
  Dims<1> merged = DimsOf<1>(tensor);
  MergeDims(merged);
  // Each is divided into new ones, from the last.
  std::vector<uint32_t> result(sizes.size(), 0);
  size_t d = sizes.size();
  for (auto dim = merged.rbegin(); dim != merged.rend(); ++dim) {
    uint64_t left = dim->size;
    uint64_t stride = dim->strides[0];
    while (left > 1) {
      if (d == 0) return std::nullopt;
      --d;
      if (sizes[d] == 1) continue;
      if (left % sizes[d] != 0) return std::nullopt;
      result[d] = static_cast<uint32_t>(stride);
      stride *= sizes[d];
      left /= sizes[d];
    }
  }
  return result;
}

std::vector<View> Lowering::EmitAll(const OperatorDesc& desc, const std::vector<View>& inputs) {
  std::vector<View> outputs(std::max<size_t>(desc.schema->outputs.size(), 1));
  if (!reader_.ok()) return outputs;
  absl::StatusOr<OperatorDesc> validated = Validate(desc);
  if (!validated.ok()) {
    reader_.Unsupported(OperatorName(desc), " does not take it: ", validated.status().message());
    return outputs;
  }
  ProgramNode node{.desc = *std::move(validated)};
  for (const View& view : inputs) node.inputs.emplace_back(view.value, view.offset);
  const std::vector<TensorDesc> tensors = OutputsOf(node.desc);
  for (size_t i = 0; i < tensors.size(); ++i) {
    outputs[i] = {static_cast<uint32_t>(program_.values.size()), 0, tensors[i]};
    node.outputs.push_back(outputs[i].value);
    program_.values.push_back({ValueKind::kIntermediate, tensors[i]});
  }
  program_.nodes.push_back(std::move(node));
  return outputs;
}

std::vector<View> Lowering::EmitAllNamed(absl::string_view name, const std::vector<View>& inputs,
                                         const NamedAttributes& attributes,
                                         std::optional<TensorDesc> output) {
  OperatorDesc desc{.schema = FindSchema(name)};
  for (const View& input : inputs) desc.inputs.push_back(input.tensor);
  desc.outputs.resize(desc.schema->outputs.size());
  desc.outputs[0] = std::move(output);
  for (const AttributeSchema& attribute : desc.schema->attributes) {
    const auto given = attributes.find(std::string(attribute.name));
    const absl::StatusOr<AttributeValue> value =
        given != attributes.end() ? given->second : DefaultOf(attribute);
    if (!value.ok()) reader_.Unsupported(name, ": ", value.status().message());
    desc.attributes.push_back(value.value_or(AttributeValue()));
  }
  return EmitAll(desc, inputs);
}

bool Lowering::IsTransposedResult(const View& view) const {
  const ProgramValue& whole = program_.values[view.value];
  if (whole.kind != ValueKind::kIntermediate || IsPacked(view.tensor) || !IsPacked(whole.tensor) ||
      ElementCount(view.tensor) != ElementCount(whole.tensor)) {
    return false;
  }
  Dims<1> dims = DimsOf<1>(view.tensor);
  SortByStride(dims, 0);
  MergeDims(dims);
  if (dims.size() != 1 || dims[0].strides[0] != 1) return false;
  // Outputs are in the order of the nodes.
  const auto after = std::upper_bound(
      program_.nodes.begin(), program_.nodes.end(), view.value,
      [](uint32_t value, const ProgramNode& node) { return value < node.outputs[0]; });
  if (after == program_.nodes.begin() || std::prev(after)->outputs.back() < view.value)
    return false;
  const OperatorFamily writer = std::prev(after)->desc.schema->family;
  return writer == OperatorFamily::kGemm || writer == OperatorFamily::kConvolution ||
         writer == OperatorFamily::kElementWise;
}

View Lowering::EmitElementWise(absl::string_view name, std::vector<View> inputs, const Sizes& sizes,
                               const NamedAttributes& attributes, std::optional<DataType> type) {
  const std::vector<uint32_t> desc_sizes = DescSizes(sizes);
  // Numbers change before they are transposed, if all are transposed in the same way.
  const auto transposed = std::find_if(inputs.begin(), inputs.end(), [&](const View& input) {
    return input.tensor.sizes == desc_sizes && IsTransposedResult(input);
  });
  const auto is_equal = [&](const View& input) {
    return ElementCount(input.tensor) == 1 ||
           (input.tensor == transposed->tensor && IsTransposedResult(input) &&
            program_.values[input.value].tensor.sizes ==
                program_.values[transposed->value].tensor.sizes);
  };
  if (transposed != inputs.end() && std::all_of(inputs.begin(), inputs.end(), is_equal)) {
    TensorDesc shape = transposed->tensor;
    const std::vector<uint32_t> whole = program_.values[transposed->value].tensor.sizes;
    for (View& input : inputs) {
      const bool is_one = ElementCount(input.tensor) == 1;
      input.tensor.sizes = is_one ? std::vector<uint32_t>{1} : whole;
      input.tensor.strides.clear();
    }
    View result =
        EmitElementWise(name, std::move(inputs), {whole.begin(), whole.end()}, attributes, type);
    result.tensor.sizes = std::move(shape.sizes);
    result.tensor.strides = std::move(shape.strides);
    return result;
  }
  for (View& input : inputs) input = Broadcast(std::move(input), desc_sizes);
  std::optional<TensorDesc> output;
  if (type.has_value()) output = TensorDesc{*type, desc_sizes, {}};
  return EmitNamed(name, inputs, attributes, std::move(output));
}

View Lowering::Pack(const View& view) {
  if (IsPacked(view.tensor)) return view;
  return EmitNamed("identity", {view});
}

View Lowering::Reshape(const View& view, const Sizes& sizes) {
  View reshaped = view;
  reshaped.tensor.sizes = DescSizes(sizes);
  if (std::optional<std::vector<uint32_t>> strides =
          ReshapedStrides(view.tensor, reshaped.tensor.sizes)) {
    reshaped.tensor.strides = *std::move(strides);
    if (IsPacked(reshaped.tensor)) reshaped.tensor.strides.clear();
    return reshaped;
  }
  View copy = Pack(view);
  copy.tensor.sizes = reshaped.tensor.sizes;
  return copy;
}

}  // namespace opmill::onnx
