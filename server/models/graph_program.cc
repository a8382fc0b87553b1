#include "server/models/graph_program.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

constexpr uint64_t kMostValueBytes = 4096;

absl::StatusOr<onnx::Tensor> ValueOf(const onnx::ModelTensor& input, const TensorDesc& tensor,
                                     size_t index, PathOfInput path_of, ReadInput read) {
  const onnx::Sizes sizes(tensor.sizes.begin(), tensor.sizes.end());
  // A product of sizes may be beyond 64 bits.
  const uint64_t count = onnx::ElementCount(sizes).value_or(kMaxElements);
  const uint64_t size = count * ElementBytes(tensor.data_type);
  if (size > kMostValueBytes) {
    return InvalidField(
        path_of(index),
        absl::StrCat("The input ", Excerpt(input.name), ", which decides the form of ",
                     "the model, has ", size, " bytes, more than ", kMostValueBytes, "."));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  RETURN_IF_ERROR(
      read(index, absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size())));
  return onnx::Tensor{{input.element, sizes},
                      std::make_shared<const std::string>(std::move(bytes))};
}

}  // namespace

absl::StatusOr<onnx::InputBindings> BindingsOf(const Model& model,
                                               const std::vector<TensorDesc>& inputs,
                                               PathOfInput path_of, ReadInput read) {
  onnx::InputBindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const onnx::ModelTensor& input = model.graph->inputs()[i];
    if (input.is_form) {
      ASSIGN_OR_RETURN(bindings.values[input.name], ValueOf(input, inputs[i], i, path_of, read));
    } else {
      bindings.sizes[input.name].assign(inputs[i].sizes.begin(), inputs[i].sizes.end());
    }
  }
  for (size_t i = 1; model.max_batch_size > 0 && i < inputs.size(); ++i) {
    if (inputs[i].sizes[0] == inputs[0].sizes[0]) continue;
    return InvalidField(path_of(i), absl::StrCat(path_of(i), " has ", inputs[i].sizes[0],
                                                 " as its first dimension, ", path_of(0), " has ",
                                                 inputs[0].sizes[0], "; a batch has one size."));
  }
  return bindings;
}

}  // namespace opmill
