#include "kernels/onnx/read_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/file_within.h"
#include "kernels/base/half.h"
#include "kernels/base/utf8.h"
#include "kernels/base/utf8_path.h"
#include "kernels/onnx/canonical_form.h"
#include "kernels/onnx/wire_size.h"
#include "onnx/model.pb.h"

namespace opmill::onnx {
namespace {

namespace fs = std::filesystem;
using file::AttributeProto;

template <typename... Parts>
absl::Status Malformed(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

template <typename Element, typename Field>
std::string Pack(const Field& field) {
  std::string bytes(field.size() * sizeof(Element), '\0');
  for (int i = 0; i < field.size(); ++i) {
    const Element element = static_cast<Element>(field.Get(i));
    std::copy_n(reinterpret_cast<const char*>(&element), sizeof element,
                bytes.data() + static_cast<size_t>(i) * sizeof element);
  }
  return bytes;
}

// The elements of a tensor without raw_data, which are in the field of its type.
std::string PackTyped(ElementType type, const file::TensorProto& tensor) {
  switch (type) {
    case ElementType::kFloat:
      return Pack<float>(tensor.float_data());
    case ElementType::kDouble:
      return Pack<double>(tensor.double_data());
    case ElementType::kInt64:
      return Pack<int64_t>(tensor.int64_data());
    case ElementType::kUint64:
      return Pack<uint64_t>(tensor.uint64_data());
    case ElementType::kUint32:
      return Pack<uint32_t>(tensor.uint64_data());
    default:
      break;
  }
  switch (ElementBytes(type)) {
    case 1:
      return Pack<uint8_t>(tensor.int32_data());
    case 2:
      return Pack<uint16_t>(tensor.int32_data());
    default:
      return Pack<int32_t>(tensor.int32_data());
  }
}

class Reader {
 public:
  // `folder` is that of the file; nullopt if there is none.
  Reader(const ReadLimits& limits, std::optional<fs::path> folder, const std::stop_token& abandoned)
      : limits_(limits),
        folder_(std::move(folder)),
        abandoned_(abandoned),
        bytes_left_(limits.memory_bytes) {}

  absl::StatusOr<Graph> Read(file::ModelProto& model) {
    if (!model.has_graph()) return Malformed("The file is not an ONNX model: it has no graph.");
    for (const file::OperatorSetIdProto& set : model.opset_import()) {
      const bool is_onnx = set.domain().empty() || set.domain() == "ai.onnx";
      opsets_[is_onnx ? "" : set.domain()] = set.version();
      if (is_onnx && (set.version() < kOldestOpset || set.version() > kNewestOpset)) {
        return absl::UnimplementedError(absl::StrCat("The model has opset ", set.version(),
                                                     "; supported are ", kOldestOpset, " to ",
                                                     kNewestOpset, "."));
      }
    }
    if (!opsets_.contains("")) return Malformed("The model does not say which opset it has.");
    file::GraphProto& graph = *model.mutable_graph();
    scopes_.emplace_back();
    RETURN_IF_ERROR(ReadInitializers(graph));
    for (const file::ValueInfoProto& input : graph.input()) RETURN_IF_ERROR(ReadInput(input));
    RETURN_IF_ERROR(ReadNodes(graph, graph_.nodes));
    ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, ReadOutputs(graph));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const file::ValueInfoProto& info = graph.output(static_cast<int>(i));
      Output& output = graph_.outputs.emplace_back();
      if (info.type().has_tensor_type()) {
        RETURN_IF_ERROR(ReadType(info, absl::StrCat("Output ", Quoted(info.name())), output));
      }
      output.name = info.name();
      output.value = outputs[i];
    }
    if (graph_.outputs.empty()) return Malformed("The model has no output.");
    return std::move(graph_);
  }

 private:
  absl::Status CheckName(absl::string_view name, absl::string_view what) const {
    if (!IsUtf8(name)) return Malformed("The name ", Quoted(name), " of ", what, " is not UTF-8.");
    if (name.size() <= limits_.name_bytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("The name ", Quoted(name), " of ", what, " has ", name.size(),
                     " bytes, more than the limit (", limits_.name_bytes, ")."));
  }

  absl::StatusOr<ValueId> Define(const std::string& name, absl::string_view what) {
    RETURN_IF_ERROR(CheckName(name, what));
    const auto [at, is_new] =
        scopes_.back().try_emplace(name, static_cast<ValueId>(graph_.values.size()));
    if (!is_new) return Malformed("The name ", Quoted(name), " of ", what, " is used twice.");
    graph_.values.push_back({.name = name});
    return at->second;
  }

  std::optional<ValueId> Find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    return std::nullopt;
  }

  absl::Status ReadInitializers(file::GraphProto& graph) {
    if (graph.sparse_initializer_size() > 0) {
      return absl::UnimplementedError(
          absl::StrCat("Initializer ", Quoted(graph.sparse_initializer(0).values().name()),
                       " is sparse, which is not supported."));
    }
    for (file::TensorProto& initializer : *graph.mutable_initializer()) {
      RETURN_IF_ERROR(CheckAbandoned(abandoned_));
      ASSIGN_OR_RETURN(const ValueId id, Define(initializer.name(), "an initializer"));
      ASSIGN_OR_RETURN(
          Tensor tensor,
          ReadTensor(initializer, absl::StrCat("Initializer ", Quoted(initializer.name()))));
      SetConstant(id, std::move(tensor));
    }
    return absl::OkStatus();
  }

  void SetConstant(ValueId id, Tensor tensor) {
    graph_.values[id].type = std::move(tensor.type);
    graph_.values[id].constant = std::move(tensor.bytes);
  }

  absl::Status ReadInput(const file::ValueInfoProto& info) {
    // Until IR version 3, initializers are inputs too.
    if (scopes_.back().contains(info.name())) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ValueId id, Define(info.name(), "an input"));
    Input input;
    RETURN_IF_ERROR(ReadType(info, absl::StrCat("Input ", Quoted(info.name())), input));
    input.value = id;
    graph_.inputs.push_back(std::move(input));
    return absl::OkStatus();
  }

  absl::Status ReadType(const file::ValueInfoProto& info, const std::string& what,
                        DeclaredType& declared) const {
    if (!info.type().has_tensor_type()) {
      return absl::UnimplementedError(
          absl::StrCat(what, " is not a tensor, which is not supported."));
    }
    const file::TypeProto::Tensor& type = info.type().tensor_type();
    declared.element = static_cast<ElementType>(type.elem_type());
    if (!type.has_shape()) return absl::OkStatus();
    if (type.shape().dim_size() > static_cast<int>(kMaxRank)) {
      return absl::UnimplementedError(absl::StrCat(what, " has ", type.shape().dim_size(),
                                                   " dimensions, more than ", kMaxRank, "."));
    }
    declared.dimensions.emplace();
    for (const file::TensorShapeProto::Dimension& dim : type.shape().dim()) {
      RETURN_IF_ERROR(CheckName(dim.dim_param(), "a dimension"));
      Dimension& dimension = declared.dimensions->emplace_back();
      dimension.name = dim.dim_param();
      // Some exporters write -1 or 0 for a size that is not known.
      if (dim.has_dim_value() && dim.dim_value() > 0) dimension.size = dim.dim_value();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueId>> ReadOutputs(const file::GraphProto& graph) {
    std::vector<ValueId> outputs;
    for (const file::ValueInfoProto& output : graph.output()) {
      const std::optional<ValueId> id = Find(output.name());
      if (!id.has_value()) {
        return Malformed("Output ", Quoted(output.name()), " is computed by no node.");
      }
      outputs.push_back(*id);
    }
    return outputs;
  }

  absl::Status ReadNodes(file::GraphProto& graph, std::vector<Node>& nodes) {
    for (file::NodeProto& proto : *graph.mutable_node()) {
      RETURN_IF_ERROR(CheckAbandoned(abandoned_));
      if (++node_count_ > limits_.nodes) {
        return absl::ResourceExhaustedError(
            absl::StrCat("The model has more than ", limits_.nodes, " nodes."));
      }
      RETURN_IF_ERROR(ReadNode(proto, nodes));
    }
    return absl::OkStatus();
  }

  absl::Status ReadNode(file::NodeProto& proto, std::vector<Node>& nodes) {
    RETURN_IF_ERROR(CheckName(proto.name(), "a node"));
    RETURN_IF_ERROR(CheckName(proto.op_type(), "an operator"));
    RETURN_IF_ERROR(CheckName(proto.domain(), "a domain"));
    Node node{.name = proto.name(),
              .op = proto.op_type(),
              .sources = {static_cast<uint32_t>(node_count_ - 1)}};
    const bool is_onnx = proto.domain().empty() || proto.domain() == "ai.onnx";
    if (!is_onnx) node.op = absl::StrCat(proto.domain(), ".", node.op);
    node.opset = opsets_[is_onnx ? "" : proto.domain()];
    if (node.name.empty() && proto.output_size() > 0) node.name = proto.output(0);
    const std::string label = NameOf(node);
    for (const std::string& input : proto.input()) {
      const std::optional<ValueId> id = input.empty() ? kNoValue : Find(input);
      if (!id.has_value()) {
        return Malformed(label, ": input ", Quoted(input), " is computed by no earlier node.");
      }
      node.inputs.push_back(*id);
    }
    for (AttributeProto& attribute : *proto.mutable_attribute()) {
      RETURN_IF_ERROR(CheckName(attribute.name(), "an attribute"));
      ASSIGN_OR_RETURN(Attribute value, ReadAttribute(attribute, node.op, label));
      if (!node.attributes.emplace(attribute.name(), std::move(value)).second) {
        return Malformed(label, ": attribute ", Quoted(attribute.name()), " is given twice.");
      }
    }
    for (const std::string& output : proto.output()) {
      if (output.empty()) {
        node.outputs.push_back(kNoValue);
        continue;
      }
      ASSIGN_OR_RETURN(const ValueId id, Define(output, absl::StrCat("an output of ", label)));
      node.outputs.push_back(id);
    }
    if (node.op == "Constant" && is_onnx) return ReadConstant(node, label);
    if (is_onnx) {
      MakeCanonical(node, [&](absl::string_view attribute, Tensor tensor) {
        graph_.values.push_back({.name = absl::StrCat(node.name, ".", attribute)});
        const ValueId id = static_cast<ValueId>(graph_.values.size() - 1);
        SetConstant(id, std::move(tensor));
        return id;
      });
    }
    nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadConstant(const Node& node, const std::string& label) {
    if (node.outputs.size() != 1 || node.outputs[0] == kNoValue || node.attributes.size() != 1) {
      return Malformed(label, " does not have one output and one attribute.");
    }
    const auto& [name, value] = *node.attributes.begin();
    const auto scalar = [](ElementType type, Sizes sizes, const auto* data, size_t count) {
      return Tensor{{type, std::move(sizes)},
                    std::make_shared<const std::string>(reinterpret_cast<const char*>(data),
                                                        count * sizeof(*data))};
    };
    if (const auto* const tensor = std::get_if<Tensor>(&value)) {
      SetConstant(node.outputs[0], *tensor);
    } else if (const auto* const i = std::get_if<int64_t>(&value)) {
      SetConstant(node.outputs[0], scalar(ElementType::kInt64, {}, i, 1));
    } else if (const auto* const f = std::get_if<float>(&value)) {
      SetConstant(node.outputs[0], scalar(ElementType::kFloat, {}, f, 1));
    } else if (const auto* const ints = std::get_if<std::vector<int64_t>>(&value)) {
      SetConstant(node.outputs[0], scalar(ElementType::kInt64, {static_cast<int64_t>(ints->size())},
                                          ints->data(), ints->size()));
    } else if (const auto* const floats = std::get_if<std::vector<float>>(&value)) {
      SetConstant(node.outputs[0],
                  scalar(ElementType::kFloat, {static_cast<int64_t>(floats->size())},
                         floats->data(), floats->size()));
    } else if (name == "value_string" || name == "value_strings") {
      SetConstant(node.outputs[0],
                  {{ElementType::kString, {}}, std::make_shared<const std::string>()});
    } else {
      return Malformed(label, ": attribute ", Quoted(name), " is not a value that is supported.");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Attribute> ReadAttribute(AttributeProto& attribute, absl::string_view op,
                                          const std::string& label) {
    switch (attribute.type()) {
      case AttributeProto::FLOAT:
        return Attribute(attribute.f());
      case AttributeProto::INT:
        return Attribute(attribute.i());
      case AttributeProto::STRING:
        return Attribute(std::move(*attribute.mutable_s()));
      case AttributeProto::FLOATS:
        return Attribute(std::vector<float>(attribute.floats().begin(), attribute.floats().end()));
      case AttributeProto::INTS:
        return Attribute(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
      case AttributeProto::STRINGS:
        return Attribute(
            std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
      case AttributeProto::TENSOR: {
        ASSIGN_OR_RETURN(Tensor tensor,
                         ReadTensor(*attribute.mutable_t(),
                                    absl::StrCat(label, ": attribute ", Quoted(attribute.name()))));
        return Attribute(std::move(tensor));
      }
      case AttributeProto::GRAPH:
        if (op == "If") return ReadBlock(*attribute.mutable_g(), label);
        return Attribute();
      case AttributeProto::UNDEFINED:
        return Malformed(label, ": attribute ", Quoted(attribute.name()), " has no type.");
      default:
        return Attribute();
    }
  }

  absl::StatusOr<Attribute> ReadBlock(file::GraphProto& graph, const std::string& label) {
    if (scopes_.size() > limits_.graph_depth) {
      return absl::ResourceExhaustedError(absl::StrCat(
          label, " is nested in more than ", limits_.graph_depth, " branches, the limit."));
    }
    if (graph.input_size() > 0) return Malformed(label, ": a branch has inputs.");
    auto block = std::make_shared<Block>();
    scopes_.emplace_back();
    RETURN_IF_ERROR(ReadInitializers(graph));
    RETURN_IF_ERROR(ReadNodes(graph, block->nodes));
    ASSIGN_OR_RETURN(block->outputs, ReadOutputs(graph));
    scopes_.pop_back();
    return Attribute(std::shared_ptr<const Block>(std::move(block)));
  }

  absl::StatusOr<Tensor> ReadTensor(file::TensorProto& proto, const std::string& label) {
    Tensor tensor;
    tensor.type.element = static_cast<ElementType>(proto.data_type());
    tensor.type.sizes.assign(proto.dims().begin(), proto.dims().end());
    if (tensor.type.sizes.size() > kMaxRank) {
      return absl::UnimplementedError(absl::StrCat(label, " has ", tensor.type.sizes.size(),
                                                   " dimensions, more than ", kMaxRank, "."));
    }
    const std::optional<uint64_t> count = ElementCount(tensor.type.sizes);
    if (!count.has_value()) {
      return Malformed(label, " is ", ToString(tensor.type), ", which has a negative size or more",
                       " than ", kMaxElements, " elements.");
    }
    const uint64_t needed = PackedBytes(tensor.type);
    if (ElementBytes(tensor.type.element) == 0) {  // refused where it is used
      tensor.bytes = std::make_shared<const std::string>();
      return tensor;
    }
    std::string bytes;
    if (proto.data_location() == 1) {
      ASSIGN_OR_RETURN(bytes, ReadExternal(proto, needed, label));
    } else if (proto.has_raw_data()) {
      bytes = std::move(*proto.mutable_raw_data());
    } else {
      bytes = PackTyped(tensor.type.element, proto);
    }
    if (bytes.size() != needed) {
      return Malformed(label, " is ", ToString(tensor.type), ", which takes ", needed,
                       " bytes, but it has ", bytes.size(), ".");
    }
    tensor.bytes = std::make_shared<const std::string>(std::move(bytes));
    return tensor;
  }

  absl::StatusOr<std::string> ReadExternal(const file::TensorProto& proto, uint64_t needed,
                                           const std::string& label) {
    std::string location;
    uint64_t offset = 0;
    uint64_t length = needed;
    for (const file::StringStringEntryProto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      const bool is_offset = entry.key() == "offset";
      if (!is_offset && entry.key() != "length") continue;
      if (!absl::SimpleAtoi(entry.value(), is_offset ? &offset : &length)) {
        return Malformed(label, ": ", entry.key(), " (", Excerpt(entry.value()),
                         ") is not a number of bytes.");
      }
    }
    if (length != needed) {
      return Malformed(label, " takes ", needed, " bytes, but length is ", length, ".");
    }
    if (needed > bytes_left_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The model takes more than ", limits_.memory_bytes, " bytes of memory."));
    }
    ASSIGN_OR_RETURN(const fs::path path, ExternalFile(location, label));
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (error || offset > size || length > size - offset) {
      return Malformed(label, ": offset ", offset, " and length ", length, " are not within file ",
                       Quoted(location), ", which has ", error ? 0 : size, " bytes.");
    }
    bytes_left_ -= needed;
    std::string bytes(static_cast<size_t>(needed), '\0');
    std::ifstream stream(path, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
      return absl::UnavailableError(
          absl::StrCat(label, ": file ", Quoted(location), " cannot be read."));
    }
    return bytes;
  }

  // Only regular files in the model's folder, or below, also after links have been followed.
  absl::StatusOr<fs::path> ExternalFile(const std::string& location, const std::string& label) {
    if (!folder_.has_value()) {
      return Malformed(label, " is in another file, but the model does not come from a file.");
    }
    RETURN_IF_ERROR(CheckName(location, "an external file"));
    return FileWithin(*folder_, location, absl::StrCat(label, ": location ", Quoted(location)),
                      "the model's folder");
  }

  const ReadLimits& limits_;
  const std::optional<fs::path> folder_;
  const std::stop_token& abandoned_;
  uint64_t bytes_left_;
  size_t node_count_ = 0;
  absl::flat_hash_map<std::string, int64_t> opsets_;
  std::vector<absl::flat_hash_map<std::string, ValueId>> scopes_;
  Graph graph_;
};

template <typename Stream>
absl::StatusOr<Graph> ReadStream(Stream& first, Stream& second, const ReadLimits& limits,
                                 std::optional<fs::path> folder, const std::stop_token& abandoned) {
  RETURN_IF_ERROR(CheckWireSize(first, *file::ModelProto::descriptor(), limits.memory_bytes));
  RETURN_IF_ERROR(CheckAbandoned(abandoned));
  file::ModelProto model;
  if (!model.ParseFromZeroCopyStream(&second)) {
    return Malformed("The file is not an ONNX model: it is cut off or malformed.");
  }
  return Reader(limits, std::move(folder), abandoned).Read(model);
}

}  // namespace

absl::StatusOr<Graph> ReadModel(absl::string_view bytes, const ReadLimits& limits,
                                const std::stop_token& abandoned) {
  if (bytes.size() > INT_MAX) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The model has ", bytes.size(), " bytes, more than the limit (", INT_MAX, ")."));
  }
  google::protobuf::io::ArrayInputStream first(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::ArrayInputStream second(bytes.data(), static_cast<int>(bytes.size()));
  return ReadStream(first, second, limits, std::nullopt, abandoned);
}

absl::StatusOr<Graph> ReadModelFile(const std::string& path, const ReadLimits& limits,
                                    const std::stop_token& abandoned) {
  const fs::path file = PathOf(path);
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    return absl::NotFoundError(absl::StrCat("There is no file ", Quoted(path), "."));
  }
  if (const uint64_t size = fs::file_size(file, error); error || size > INT_MAX) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The file ", Quoted(path), " has ", size, " bytes, more than the limit (", INT_MAX, ")."));
  }
  std::ifstream first_file(file, std::ios::binary);
  std::ifstream second_file(file, std::ios::binary);
  if (!first_file || !second_file) {
    return absl::UnavailableError(absl::StrCat("The file ", Quoted(path), " cannot be opened."));
  }
  google::protobuf::io::IstreamInputStream first(&first_file);
  google::protobuf::io::IstreamInputStream second(&second_file);
  const fs::path folder = file.parent_path();
  return ReadStream(first, second, limits, folder.empty() ? fs::path(".") : folder, abandoned);
}

}  // namespace opmill::onnx
