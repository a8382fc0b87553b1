// Models as text, in protobuf's text format.
#ifndef OPMILL_TESTS_ONNX_MODEL_TEXT_H_
#define OPMILL_TESTS_ONNX_MODEL_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/specialize.h"

namespace opmill::onnx {

// The bytes of a model with the fields of a GraphProto.
std::string ModelBytes(absl::string_view graph, int64_t opset = 17);
// `input { ... }` of FLOAT, or of another type.
std::string InputText(absl::string_view name, const Sizes& sizes, int type = 1);
// An INT64 initializer of one dimension.
std::string IntegersText(absl::string_view name, const Sizes& integers);
// A node with unnamed attributes' text appended: NodeText("Relu", "x", "y").
// Names of inputs and outputs are separated by commas.
std::string NodeText(absl::string_view op, absl::string_view inputs, absl::string_view outputs,
                     absl::string_view more = {});
std::string OutputText(absl::string_view name);
std::string IntText(absl::string_view name, int64_t value);
std::string IntsText(absl::string_view name, const Sizes& values);
std::string FloatText(absl::string_view name, float value);

// y is |x|, or -x if c is true: an If of two nodes.
std::string IfText();

// Of a model whose inputs have fixed sizes.
absl::StatusOr<Graph> Specialized(absl::string_view graph, int64_t opset = 17,
                                  const InputBindings& bindings = {});
// "Relu, Add": of the nodes in order.
std::string OperatorsOf(const Graph& graph);

}  // namespace opmill::onnx

#endif  // OPMILL_TESTS_ONNX_MODEL_TEXT_H_
