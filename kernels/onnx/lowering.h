// Operators of the engine, made from the nodes of a graph.
#ifndef OPMILL_KERNELS_ONNX_LOWERING_H_
#define OPMILL_KERNELS_ONNX_LOWERING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/node_reader.h"

namespace opmill::onnx {

// A tensor over a value, `offset` elements from its start. Transpose, Slice, Expand and the like
// only make another view.
struct View {
  uint32_t value = kNoValue;
  uint64_t offset = 0;
  TensorDesc tensor;

  friend bool operator==(const View&, const View&) = default;
};

struct LoweredNode {
  OperatorDesc desc;  // validated
  std::vector<View> inputs;
  std::vector<uint32_t> outputs;
};

// Nodes in order. A view's value is an index of `values`; those that come from outside are first.
struct Lowered {
  std::vector<TensorDesc> values;  // packed
  std::vector<LoweredNode> nodes;
};

// Adds operators to `lowered`. Errors go to the reader of the node.
class Lowering {
 public:
  Lowering(NodeReader& reader, Lowered& lowered) : reader_(reader), lowered_(lowered) {}

  NodeReader& reader() { return reader_; }
  // The engine does not have the operator, whatever its tensors are.
  void HasNoKernel() {
    has_no_kernel_ = true;
    reader_.Unsupported("devices have no kernel for it.");
  }
  bool has_no_kernel() const { return has_no_kernel_; }

  std::vector<View> EmitAll(const OperatorDesc& desc, std::vector<View> inputs);
  View Emit(const OperatorDesc& desc, std::vector<View> inputs) {
    return EmitAll(desc, std::move(inputs))[0];
  }
  // The operator with that name, if the engine has it. Other attributes have their defaults.
  View EmitNamed(absl::string_view name, std::vector<View> inputs,
                 const std::map<std::string, AttributeValue>& attributes);
  // An element-wise operator; inputs are broadcast to `sizes`. Attributes have their defaults.
  View EmitElementWise(absl::string_view name, std::vector<View> inputs, const Sizes& sizes,
                       std::vector<AttributeValue> attributes = {},
                       std::optional<DataType> type = std::nullopt);

  // The same elements in a packed tensor, if they are not already.
  View Pack(const View& view);
  // A view if the strides allow it, otherwise a copy.
  View Reshape(const View& view, const Sizes& sizes);

 private:
  NodeReader& reader_;
  Lowered& lowered_;
  bool has_no_kernel_ = false;
};

// ONNX's sizes in a descriptor: at least one dimension. Sizes must not be 0.
std::vector<uint32_t> DescSizes(const Sizes& sizes);
TensorDesc DescOf(const TensorType& type);
// The view broadcast to sizes of at least its rank.
View Broadcast(View view, const std::vector<uint32_t>& sizes);
// The strides with which the view has other sizes, if there are any.
std::optional<std::vector<uint32_t>> ReshapedStrides(const TensorDesc& tensor,
                                                     const std::vector<uint32_t>& sizes);
const OperatorSchema* FindSchema(absl::string_view name);  // null if there is none

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_LOWERING_H_
