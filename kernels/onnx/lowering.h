// Operators of the engine, made from the nodes of a graph.
#ifndef OPMILL_KERNELS_ONNX_LOWERING_H_
#define OPMILL_KERNELS_ONNX_LOWERING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/onnx/graph.h"
#include "kernels/onnx/node_reader.h"
#include "kernels/program/program.h"

namespace opmill::onnx {

// A tensor over a value of a program, `offset` elements from its start. Transpose, Slice, Expand
// and the like only make another view.
struct View {
  uint32_t value = kNoValue;
  uint64_t offset = 0;
  TensorDesc tensor;

  friend bool operator==(const View&, const View&) = default;
};

using NamedAttributes = std::map<std::string, AttributeValue>;

// Adds operators to `program`, whose results are intermediate values. Errors go to the reader of
// the node.
class Lowering {
 public:
  Lowering(NodeReader& reader, Program& program) : reader_(reader), program_(program) {}

  NodeReader& reader() { return reader_; }
  // The engine does not have the operator, whatever its tensors are.
  void HasNoKernel() {
    has_no_kernel_ = true;
    reader_.Unsupported("devices have no kernel for it.");
  }
  bool has_no_kernel() const { return has_no_kernel_; }

  std::vector<View> EmitAll(const OperatorDesc& desc, const std::vector<View>& inputs);
  View Emit(const OperatorDesc& desc, const std::vector<View>& inputs) {
    return EmitAll(desc, inputs)[0];
  }
  // The operator with that name. Other attributes have their defaults, other outputs are inferred.
  std::vector<View> EmitAllNamed(absl::string_view name, const std::vector<View>& inputs,
                                 const NamedAttributes& attributes = {},
                                 std::optional<TensorDesc> output = std::nullopt);
  View EmitNamed(absl::string_view name, const std::vector<View>& inputs,
                 const NamedAttributes& attributes = {},
                 std::optional<TensorDesc> output = std::nullopt) {
    return EmitAllNamed(name, inputs, attributes, std::move(output))[0];
  }
  // An element-wise operator, with inputs broadcast to `sizes`. `type` is that of the output where
  // the operator leaves it open. The result is a whole value, or transposed as all inputs of more
  // than one element are.
  View EmitElementWise(absl::string_view name, std::vector<View> inputs, const Sizes& sizes,
                       const NamedAttributes& attributes = {},
                       std::optional<DataType> type = std::nullopt);

  // The same elements in a packed tensor, if they are not already.
  View Pack(const View& view);
  // A view if the strides allow it, otherwise a copy.
  View Reshape(const View& view, const Sizes& sizes);

 private:
  // Whether the view has all elements of what a product or an element-wise operator computes, which
  // may then compute functions of them too, in another order.
  bool IsTransposedResult(const View& view) const;

  NodeReader& reader_;
  Program& program_;
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

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_LOWERING_H_
