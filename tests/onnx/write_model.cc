#include "tests/onnx/write_model.h"

#include "absl/strings/str_cat.h"
#include "onnx/model.pb.h"

namespace opmill::onnx {
namespace {

void WriteType(const std::string& name, const TensorType& type, file::ValueInfoProto& info) {
  info.set_name(name);
  file::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(type.element));
  tensor.mutable_shape();
  for (const int64_t size : type.sizes) tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

void WriteAttribute(const std::string& name, const Attribute& value, file::AttributeProto& to) {
  to.set_name(name);
  if (const auto* const i = std::get_if<int64_t>(&value)) {
    to.set_type(file::AttributeProto::INT);
    to.set_i(*i);
  } else if (const auto* const f = std::get_if<float>(&value)) {
    to.set_type(file::AttributeProto::FLOAT);
    to.set_f(*f);
  } else if (const auto* const s = std::get_if<std::string>(&value)) {
    to.set_type(file::AttributeProto::STRING);
    to.set_s(*s);
  } else if (const auto* const ints = std::get_if<std::vector<int64_t>>(&value)) {
    to.set_type(file::AttributeProto::INTS);
    to.mutable_ints()->Add(ints->begin(), ints->end());
  } else if (const auto* const floats = std::get_if<std::vector<float>>(&value)) {
    to.set_type(file::AttributeProto::FLOATS);
    to.mutable_floats()->Add(floats->begin(), floats->end());
  }
}

}  // namespace

std::string WriteModel(const Graph& graph) {
  file::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(18);
  file::GraphProto& to = *model.mutable_graph();
  to.set_name("specialized");
  const auto name = [](ValueId id) { return id == kNoValue ? "" : absl::StrCat("v", id); };
  for (const Input& input : graph.inputs) {
    const Value& value = graph.values[input.value];
    WriteType(value.name, value.type, *to.add_input());
    file::NodeProto& identity = *to.add_node();
    identity.set_op_type("Identity");
    identity.add_input(value.name);
    identity.add_output(name(input.value));
  }
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.constant == nullptr) continue;
    file::TensorProto& tensor = *to.add_initializer();
    tensor.set_name(name(id));
    tensor.set_data_type(static_cast<int>(value.type.element));
    for (const int64_t size : value.type.sizes) tensor.add_dims(size);
    tensor.set_raw_data(*value.constant);
  }
  for (const Node& node : graph.nodes) {
    file::NodeProto& proto = *to.add_node();
    proto.set_op_type(node.op);
    for (const ValueId id : node.inputs) proto.add_input(name(id));
    for (const ValueId id : node.outputs) proto.add_output(name(id));
    for (const auto& [key, value] : node.attributes) {
      WriteAttribute(key, value, *proto.add_attribute());
    }
  }
  for (const Output& output : graph.outputs) {
    file::NodeProto& identity = *to.add_node();
    identity.set_op_type("Identity");
    identity.add_input(name(output.value));
    identity.add_output(absl::StrCat("output ", output.name));
    WriteType(absl::StrCat("output ", output.name), graph.values[output.value].type,
              *to.add_output());
  }
  return model.SerializeAsString();
}

}  // namespace opmill::onnx
