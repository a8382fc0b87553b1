// Operators that a device computes in one run: what one writes, later ones read. A pure value. An
// operator is a program of one node.
#ifndef OPMILL_KERNELS_PROGRAM_PROGRAM_H_
#define OPMILL_KERNELS_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/program/constant_data.h"

namespace opmill {

enum class ValueKind : uint32_t {
  kInput,         // the caller binds it
  kOutput,        // the caller gets it; later nodes may read it too
  kIntermediate,  // exists only during a run
  kConstant,      // its bytes belong to the program
};
inline constexpr size_t kValueKinds = 4;

// A tensor of a program.
struct ProgramValue {
  ValueKind kind = ValueKind::kIntermediate;
  TensorDesc tensor;
  std::shared_ptr<const ConstantData> constant = {};  // SpannedBytes; null in other kinds

  friend bool operator==(const ProgramValue& a, const ProgramValue& b) {
    return a.kind == b.kind && a.tensor == b.tensor &&
           (a.constant == b.constant || (a.constant && b.constant && *a.constant == *b.constant));
  }
  template <typename H>
  friend H AbslHashValue(H h, const ProgramValue& v) {
    h = H::combine(std::move(h), v.kind, v.tensor);
    return v.constant == nullptr ? std::move(h) : H::combine(std::move(h), *v.constant);
  }
};

// What a node reads: elements of a value, from this one on, with the sizes and strides of the
// node's descriptor. So a slice, a transposition or a reshape takes no node.
struct ProgramView {
  uint32_t value = 0;
  uint64_t first_element = 0;
  // NOLINTNEXTLINE(google-explicit-constructor): a whole value
  ProgramView(uint32_t index, uint64_t first = 0) : value(index), first_element(first) {}
  friend bool operator==(const ProgramView&, const ProgramView&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ProgramView& v) {
    return H::combine(std::move(h), v.value, v.first_element);
  }
};

// An operator of a program, and which value each of its tensors is. Optional tensors that the
// descriptor leaves out have none.
struct ProgramNode {
  OperatorDesc desc;
  std::vector<ProgramView> inputs;
  std::vector<uint32_t> outputs;

  friend bool operator==(const ProgramNode&, const ProgramNode&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ProgramNode& n) {
    return H::combine(std::move(h), n.desc, n.inputs, n.outputs);
  }
};

// Nodes are in the order of their computation. The inputs and outputs of a run are the values of
// these kinds, in their order.
struct Program {
  std::vector<ProgramValue> values;
  std::vector<ProgramNode> nodes;

  friend bool operator==(const Program&, const Program&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Program& p) {
    return H::combine(std::move(h), p.values, p.nodes);
  }
};

// The program that computes this validated operator alone.
Program ProgramOf(OperatorDesc desc);
// The operator, if the program is ProgramOf it; otherwise null.
const OperatorDesc* OperatorOf(const Program& program);

// Validates the nodes, that constants have their bytes, and that each other value is written once,
// before it is read, by a tensor equal to its own; what reads it has its type and lies within it.
// Errors are those of Validate for descriptors; fields are "values[2].tensor.sizes[0]",
// "nodes[1].inputs[0]", "nodes[1].desc.axes[0]".
absl::StatusOr<Program> Validate(Program program, FeatureLevel level = kNewestFeatureLevel);

// RequiredBytes of the values of that kind, in their order.
std::vector<uint64_t> RequiredBytes(const Program& program, ValueKind kind);

// One line. For a program of one operator, the descriptor's text.
std::string ToString(const Program& program);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PROGRAM_PROGRAM_H_
