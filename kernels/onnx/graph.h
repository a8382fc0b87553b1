// An ONNX model between its file and a program. A pure value.
#ifndef OPMILL_KERNELS_ONNX_GRAPH_H_
#define OPMILL_KERNELS_ONNX_GRAPH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/tensor.h"

namespace opmill::onnx {

// TensorProto.DataType. Others are read, and refused where a node uses them.
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
};

absl::string_view ToString(ElementType type);  // ONNX's name: "FLOAT"
uint32_t ElementBytes(ElementType type);       // 0 for strings and types that are not above
// The type of a program's tensor: BOOL is UINT8. kUnknown for types that ElementBytes does not
// know; kFloat64, which no operator supports, for DOUBLE.
DataType DataTypeOf(ElementType type);

using Sizes = std::vector<int64_t>;

struct TensorType {
  ElementType element = ElementType::kUndefined;
  Sizes sizes;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

std::string ToString(const TensorType& type);  // "FLOAT[2,3]"
// nullopt: above kMaxElements, or a negative size.
std::optional<uint64_t> ElementCount(const Sizes& sizes);
uint64_t PackedBytes(const TensorType& type);  // of a type with a count

// Little endian, packed, row-major.
using Bytes = std::shared_ptr<const std::string>;

struct Tensor {
  TensorType type;
  Bytes bytes;
};

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = ~ValueId{0};  // an optional input or output that is left out

struct Value {
  std::string name;
  TensorType type;  // of constants, and after Specialize of all values
  Bytes constant;   // null if it is not one
};

using Values = std::deque<Value>;  // references to elements stay valid while others are added

struct Block;
// std::monostate: a kind that no supported operator has.
using Attribute = std::variant<std::monostate, int64_t, float, std::string, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>, Tensor,
                               std::shared_ptr<const Block>>;

struct Node {
  std::string name;   // if the file has none, that of its first output
  std::string op;     // with its domain, if that is not ONNX's own: "com.microsoft.FusedConv"
  int64_t opset = 0;  // version of its domain
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::map<std::string, Attribute> attributes;
  // The nodes of the file that it comes from, by their numbers there. It has several once a pass
  // has joined them.
  std::vector<uint32_t> sources = {};
};

// The branch of an If. Its values are those of the graph.
struct Block {
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
};

struct Dimension {
  std::optional<int64_t> size;
  std::string name;  // of one without size; may be empty
};

// What a file says of a tensor.
struct DeclaredType {
  ElementType element = ElementType::kUndefined;
  std::optional<std::vector<Dimension>> dimensions;  // nullopt: of any rank
};

struct Input : DeclaredType {
  ValueId value = kNoValue;
};

struct Output : DeclaredType {
  std::string name;
  ValueId value = kNoValue;
};

// Nodes are in the order of their computation.
struct Graph {
  Values values;
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<Output> outputs;
};

std::string Quoted(absl::string_view name);  // in a sentence
std::string NameOf(const Node& node);        // "Node 'conv1' (Conv)", for sentences
// Operators and how many nodes each has, including those of branches.
std::map<std::string, uint32_t> CountOperators(const std::vector<Node>& nodes);

}  // namespace opmill::onnx

#endif  // OPMILL_KERNELS_ONNX_GRAPH_H_
