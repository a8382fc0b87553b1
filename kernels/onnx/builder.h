// Adds nodes to a graph: infers the types of their outputs, computes those whose inputs are
// constant, and replaces operators by simpler ones.
#ifndef OPMILL_KERNELS_ONNX_BUILDER_H_
#define OPMILL_KERNELS_ONNX_BUILDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/onnx/elements.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

struct BuildLimits {
  size_t nodes = 1 << 16;
  // A constant is computed if it is not larger than its inputs or than `small_bytes`.
  uint64_t small_bytes = 64 << 10;
  uint64_t folded_bytes = uint64_t{1} << 30;  // of all constants that are computed
  // After a stop, no more nodes are added: Cancelled.
  std::stop_token abandoned = {};
};

struct OperatorRow;
class NodeReader;

using Attributes = std::map<std::string, Attribute>;

class Builder {
 public:
  // Nodes go to `nodes`, in order; values to `values`, which may have others.
  Builder(Values& values, std::vector<Node>& nodes, const BuildLimits& limits)
      : values_(values), nodes_(nodes), limits_(limits), bytes_left_(limits.folded_bytes) {}

  // The values of the outputs: new ones, those of the nodes that replace it, or for an Identity its
  // input. Of `node.outputs` only which are left out is used.
  absl::StatusOr<std::vector<ValueId>> AddNode(Node node);

  // For operators that are replaced by others: the first output. After an error, which AddNode
  // returns, kNoValue.
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return AddAll(op, std::move(inputs), 1, std::move(attributes))[0];
  }
  std::vector<ValueId> AddAll(absl::string_view op, std::vector<ValueId> inputs, size_t outputs,
                              Attributes attributes = {});
  ValueId Constant(Tensor tensor);
  ValueId Constant(const std::vector<int64_t>& integers) { return Constant(TensorOf(integers)); }
  const Value& value(ValueId id) const;
  ValueId Reshape(ValueId x, const Sizes& sizes) { return Add("Reshape", {x, Constant(sizes)}); }

 private:
  ValueId NewValue(const std::string& name, TensorType type, Bytes constant = nullptr);
  absl::StatusOr<std::optional<std::vector<ValueId>>> Expand(const OperatorRow& row,
                                                             NodeReader& reader);
  void Fold(const OperatorRow& row, const Node& node);
  bool MayFold(const Node& node);

  Values& values_;
  std::vector<Node>& nodes_;
  const BuildLimits limits_;
  uint64_t bytes_left_;
  const Node* origin_ = nullptr;  // the node whose replacement is being added
  absl::Status status_;           // of that replacement
};

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_BUILDER_H_
