// A node with its attributes and inputs in the form that the functions of operators need.
#ifndef OPMILL_KERNELS_ONNX_NODE_READER_H_
#define OPMILL_KERNELS_ONNX_NODE_READER_H_

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/onnx/graph.h"

namespace opmill::onnx {

// Remembers the first error, and from then on returns defaults: callers need not check each value.
class NodeReader {
 public:
  // After a stop of `abandoned`, what is computed from the node is not needed any more.
  NodeReader(const Node& node, const Values& values, std::stop_token abandoned = {})
      : node_(node), values_(values), abandoned_(std::move(abandoned)) {}

  const Node& node() const { return node_; }
  bool is_abandoned() const { return abandoned_.stop_requested(); }
  // The same in a loop over elements, most of which do not look.
  bool is_abandoned_at(size_t element) const { return element % 4096 == 0 && is_abandoned(); }
  size_t input_count() const { return node_.inputs.size(); }
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  const Value& input(size_t i);  // refuses the node if the input is left out
  ElementType element(size_t i) { return input(i).type.element; }
  const Sizes& sizes(size_t i) { return input(i).type.sizes; }
  int64_t rank(size_t i) { return static_cast<int64_t>(sizes(i).size()); }
  // The type that has been inferred.
  const TensorType& output(size_t i) const { return values_[node_.outputs[i]].type; }

  bool IsConstant(size_t i) const;
  // The elements of an input that must be constant, because the form of the output depends on it.
  std::vector<int64_t> Integers(size_t i);
  std::vector<double> Numbers(size_t i);

  bool HasAttribute(absl::string_view name) const {
    return node_.attributes.contains(std::string(name));
  }
  int64_t Int(absl::string_view name, int64_t otherwise);
  float Float(absl::string_view name, float otherwise);
  std::string String(absl::string_view name, absl::string_view otherwise);
  std::vector<int64_t> Ints(absl::string_view name);
  std::vector<std::string> Strings(absl::string_view name);
  // From 0 to rank - 1; negative ones count from the end.
  size_t Axis(int64_t axis, int64_t rank);
  std::vector<size_t> Axes(const std::vector<int64_t>& axes, int64_t rank);

  // The sentence continues "Node 'x' (Conv): ".
  template <typename... Parts>
  void Refuse(const Parts&... parts) {
    RefuseWith(absl::StatusCode::kInvalidArgument, absl::StrCat(parts...));
  }
  template <typename... Parts>
  void Unsupported(const Parts&... parts) {
    RefuseWith(absl::StatusCode::kUnimplemented, absl::StrCat(parts...));
  }
  void Add(const absl::Status& status);  // keeps its sentence
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  const T* Get(absl::string_view name, absl::string_view kind);
  void RefuseWith(absl::StatusCode code, const std::string& sentence);

  const Node& node_;
  const Values& values_;
  const std::stop_token abandoned_;
  absl::Status status_;
};

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_NODE_READER_H_
