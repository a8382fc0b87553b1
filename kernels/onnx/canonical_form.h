#ifndef OPMILL_KERNELS_ONNX_CANONICAL_FORM_H_
#define OPMILL_KERNELS_ONNX_CANONICAL_FORM_H_

#include <functional>

#include "kernels/onnx/graph.h"

namespace opmill::onnx {

// Gives a node of an older opset the form of the newest one. Attributes that have become inputs
// become constants, which `add_constant` adds to the graph.
void MakeCanonical(Node& node,
                   const std::function<ValueId(absl::string_view, Tensor)>& add_constant);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_CANONICAL_FORM_H_
