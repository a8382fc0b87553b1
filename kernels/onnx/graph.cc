#include "kernels/onnx/graph.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/base/excerpt.h"

namespace opmill::onnx {
namespace {

struct ElementRow {
  ElementType type;
  absl::string_view name;
  uint32_t bytes;
  DataType data_type;
};

constexpr ElementRow kElements[] = {
    {ElementType::kFloat, "FLOAT", 4, DataType::kFloat32},
    {ElementType::kUint8, "UINT8", 1, DataType::kUint8},
    {ElementType::kInt8, "INT8", 1, DataType::kInt8},
    {ElementType::kUint16, "UINT16", 2, DataType::kUint16},
    {ElementType::kInt16, "INT16", 2, DataType::kInt16},
    {ElementType::kInt32, "INT32", 4, DataType::kInt32},
    {ElementType::kInt64, "INT64", 8, DataType::kInt64},
    {ElementType::kString, "STRING", 0, DataType::kUnknown},
    {ElementType::kBool, "BOOL", 1, DataType::kUint8},
    {ElementType::kFloat16, "FLOAT16", 2, DataType::kFloat16},
    {ElementType::kDouble, "DOUBLE", 8, DataType::kFloat64},
    {ElementType::kUint32, "UINT32", 4, DataType::kUint32},
    {ElementType::kUint64, "UINT64", 8, DataType::kUint64},
};
constexpr ElementRow kUnknownElement = {ElementType::kUndefined, "an unknown type", 0,
                                        DataType::kUnknown};

const ElementRow& RowOf(ElementType type) {
  for (const ElementRow& row : kElements) {
    if (row.type == type) return row;
  }
  return kUnknownElement;
}

void Count(const std::vector<Node>& nodes, std::map<std::string, uint32_t>& counts) {
  for (const Node& node : nodes) {
    ++counts[node.op];
    for (const auto& [name, attribute] : node.attributes) {
      const auto* const block = std::get_if<std::shared_ptr<const Block>>(&attribute);
      if (block != nullptr) Count((*block)->nodes, counts);
    }
  }
}

}  // namespace

absl::string_view ToString(ElementType type) { return RowOf(type).name; }
uint32_t ElementBytes(ElementType type) { return RowOf(type).bytes; }
DataType DataTypeOf(ElementType type) { return RowOf(type).data_type; }

std::string ToString(const TensorType& type) {
  return absl::StrCat(ToString(type.element), "[", absl::StrJoin(type.sizes, ","), "]");
}

std::optional<uint64_t> ElementCount(const Sizes& sizes) {
  uint64_t count = 1;
  bool is_empty = false;
  for (const int64_t size : sizes) {
    if (size < 0 || static_cast<uint64_t>(size) > kMaxElements) return std::nullopt;
    if (size == 0) {
      is_empty = true;
    } else if (count > kMaxElements / static_cast<uint64_t>(size)) {
      return std::nullopt;
    } else {
      count *= static_cast<uint64_t>(size);
    }
  }
  return is_empty ? 0 : count;
}

uint64_t PackedBytes(const TensorType& type) {
  return ElementCount(type.sizes).value_or(0) * ElementBytes(type.element);
}

std::string Quoted(absl::string_view name) { return absl::StrCat("'", Excerpt(name), "'"); }

std::string NameOf(const Node& node) {
  return absl::StrCat("Node '", Excerpt(node.name), "' (", Excerpt(node.op), ")");
}

std::map<std::string, uint32_t> CountOperators(const std::vector<Node>& nodes) {
  std::map<std::string, uint32_t> counts;
  Count(nodes, counts);
  return counts;
}

}  // namespace opmill::onnx
