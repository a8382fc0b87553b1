#include "kernels/onnx/builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/onnx/evaluate.h"
#include "kernels/onnx/operator_table.h"

namespace opmill::onnx {
namespace {

void CheckForm(const OperatorRow& row, NodeReader& node) {
  size_t count = node.input_count();
  while (count > 0 && !node.has(count - 1)) --count;
  if (count < row.least_inputs || count > row.most_inputs) {
    node.Refuse("it has ", count, " inputs, not ", row.least_inputs, " to ", row.most_inputs, ".");
  }
  if (node.node().outputs.empty()) node.Refuse("it has no output.");
  for (size_t i = 0; i < count; ++i) {
    if (node.has(i) && ElementBytes(node.element(i)) == 0) {
      node.Unsupported("input ", i, " is of type ", ToString(node.element(i)),
                       ", which is not supported.");
    }
  }
  const std::vector<absl::string_view> known = absl::StrSplit(row.attributes, ' ');
  for (const auto& [name, value] : node.node().attributes) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      node.Unsupported("attribute '", Excerpt(name), "' is not supported.");
    }
  }
}

// What a program can hold.
void CheckTypes(NodeReader& node, const std::vector<TensorType>& types) {
  for (const TensorType& type : types) {
    if (type.sizes.size() > kMaxRank) {
      node.Unsupported("its output has ", type.sizes.size(), " dimensions, more than ", kMaxRank,
                       ".");
    } else if (!ElementCount(type.sizes).has_value()) {
      node.Unsupported("its output is ", ToString(type),
                       ", which has a negative size or more than ", kMaxElements, " elements.");
    }
  }
}

}  // namespace

const Value& Builder::value(ValueId id) const {
  static const Value* const none = new Value();
  return id == kNoValue ? *none : values_[id];
}

ValueId Builder::NewValue(const std::string& name, TensorType type, Bytes constant) {
  values_.push_back({name, std::move(type), std::move(constant)});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Builder::Constant(Tensor tensor) {
  return NewValue(origin_ == nullptr ? "" : origin_->name, std::move(tensor.type),
                  std::move(tensor.bytes));
}

std::vector<ValueId> Builder::AddAll(absl::string_view op, std::vector<ValueId> inputs,
                                     size_t outputs, Attributes attributes) {
  if (status_.ok()) {
    Node node{.op = std::string(op),
              .inputs = std::move(inputs),
              .outputs = std::vector<ValueId>(outputs, 0),
              .attributes = std::move(attributes)};
    if (origin_ != nullptr) {
      node.name = origin_->name;
      node.opset = origin_->opset;
      node.sources = origin_->sources;
    }
    absl::StatusOr<std::vector<ValueId>> added = AddNode(std::move(node));
    if (added.ok()) return *std::move(added);
    status_ = added.status();
  }
  return std::vector<ValueId>(outputs, kNoValue);
}

absl::StatusOr<std::vector<ValueId>> Builder::AddNode(Node node) {
  if (absl::Status ended = CheckAbandoned(limits_.abandoned); !ended.ok()) return ended;
  NodeReader reader(node, values_);
  const OperatorRow* const row = FindOperator(node.op);
  if (row == nullptr) reader.Unsupported("the operator is not supported.");
  if (row != nullptr) CheckForm(*row, reader);
  if (!reader.ok()) return reader.status();
  if (row->expand != nullptr) {
    ASSIGN_OR_RETURN(std::optional<std::vector<ValueId>> outputs, Expand(*row, reader));
    if (outputs.has_value()) {
      outputs->resize(node.outputs.size(), kNoValue);
      return *std::move(outputs);
    }
  }
  std::vector<TensorType> types;
  if (row->infer != nullptr) row->infer(reader, types);
  CheckTypes(reader, types);
  for (size_t i = types.size(); i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) reader.Unsupported("output ", i, " is not supported.");
  }
  if (reader.ok() && nodes_.size() >= limits_.nodes) {
    reader.Unsupported("with it the model has more than ", limits_.nodes, " nodes.");
  }
  if (!reader.ok()) return reader.status();
  node.outputs.resize(std::min(node.outputs.size(), types.size()));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    node.outputs[i] = NewValue(node.name, std::move(types[i]));
  }
  Fold(*row, node);
  std::vector<ValueId> outputs = node.outputs;
  if (values_[outputs[0]].constant == nullptr) nodes_.push_back(std::move(node));
  return outputs;
}

absl::StatusOr<std::optional<std::vector<ValueId>>> Builder::Expand(const OperatorRow& row,
                                                                    NodeReader& reader) {
  const Node* const outer = std::exchange(origin_, &reader.node());
  const size_t first = nodes_.size();
  std::optional<std::vector<ValueId>> outputs = row.expand(reader, *this);
  origin_ = outer;
  reader.Add(std::exchange(status_, absl::OkStatus()));
  if (reader.ok()) return outputs;
  nodes_.resize(first);
  return reader.status();
}

bool Builder::MayFold(const Node& node) {
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue) continue;
    if (values_[id].constant == nullptr) return false;
    input_bytes += values_[id].constant->size();
  }
  for (const ValueId id : node.outputs) output_bytes += PackedBytes(values_[id].type);
  if (output_bytes > std::max(input_bytes, limits_.small_bytes)) return false;
  const uint64_t cost = std::max(input_bytes, output_bytes);
  if (cost > bytes_left_) return false;
  bytes_left_ -= cost;
  return true;
}

void Builder::Fold(const OperatorRow& row, const Node& node) {
  const bool is_empty = std::all_of(node.outputs.begin(), node.outputs.end(),
                                    [&](ValueId id) { return PackedBytes(values_[id].type) == 0; });
  std::optional<std::vector<Bytes>> computed;
  if (is_empty) {
    computed.emplace(node.outputs.size(), std::make_shared<const std::string>());
  } else if (MayFold(node)) {
    computed = Evaluate(row, node, values_, limits_.small_bytes, limits_.abandoned);
  }
  for (size_t i = 0; computed.has_value() && i < node.outputs.size(); ++i) {
    values_[node.outputs[i]].constant = (*computed)[i];
  }
}

}  // namespace opmill::onnx
